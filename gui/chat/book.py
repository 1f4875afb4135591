"""All chats, which one is shown, and where a message of the session belongs. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from gui.chat.conversation import Exchange, messages_for
from runtime.cluster.messages import Chat

# msgspec resolves the annotations when it decodes
from runtime.cluster.messages.asked import MaxTokens, Seed, Temperature, TopP  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.messages import Answered, Finished, Rejected, Text

TITLE_LENGTH = 40
KEPT_CHATS = 50
UNTITLED = "New Chat"


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How a chat's questions are asked."""

    system: str = ""
    temperature: Temperature = 0.0
    """0 is greedy: always the likeliest token."""
    top_p: TopP = 1.0
    max_tokens: MaxTokens = 1024
    seed: Seed | None = None
    """None: another one for each answer."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One chat."""

    exchanges: tuple[Exchange, ...] = ()
    settings: ChatSettings = field(default_factory=ChatSettings)
    name: str = ""
    """If it is not called by its first question."""

    @property
    def title(self) -> str:
        first = self.name or (self.exchanges[0].question if self.exchanges else UNTITLED)
        line = " ".join(first.split())
        return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"

    @property
    def answering(self) -> bool:
        return bool(self.exchanges) and self.exchanges[-1].open

    @property
    def used_tokens(self) -> int:
        """Of the context: the newest prompt and its answer, as far as they are known."""
        return next((one.used_tokens for one in reversed(self.exchanges) if one.used_tokens), 0)

    def asked(self, question: str, split: str, *, after: int | None = None, afresh: bool = False) -> Conversation:
        """With a question at the end, or in the place of what comes from ``after`` on."""
        kept = self.exchanges if after is None else self.exchanges[:after]
        exchange = Exchange(uuid4().hex, question, split=split, afresh=afresh)
        return replace(self, exchanges=(*kept, exchange))

    def request(self) -> Chat:
        """What the newest question sends to the model."""
        newest = self.exchanges[-1]
        before = () if newest.afresh else self.exchanges[:-1]
        settings = self.settings
        return Chat(
            newest.request_id,
            messages_for(before, newest.question, settings.system),
            settings.max_tokens,
            settings.temperature,
            settings.top_p,
            settings.seed,
        )


class ChatBook:
    """The chats, newest first."""

    def __init__(self, conversations: tuple[Conversation, ...] = ()) -> None:
        self.conversations: list[Conversation] = list(conversations) or [Conversation()]
        self.place = 0

    @property
    def shown(self) -> Conversation:
        return self.conversations[self.place]

    @shown.setter
    def shown(self, conversation: Conversation) -> None:
        self.conversations[self.place] = conversation

    def begin(self, settings: ChatSettings | None = None, name: str = "") -> None:
        """Show an empty chat; one that is there already and still empty is taken."""
        fresh = Conversation(settings=settings or self.shown.settings, name=name)
        if not name and not self.conversations[0].exchanges:
            self.conversations[0] = replace(fresh, name="")
        else:
            self.conversations.insert(0, fresh)
            del self.conversations[KEPT_CHATS:]
        self.place = 0

    def show(self, place: int) -> None:
        """Show another one."""
        self.place = place

    def delete(self) -> None:
        """Forget the one that is shown."""
        del self.conversations[self.place]
        if not self.conversations:
            self.conversations.append(Conversation())
        self.place = min(self.place, len(self.conversations) - 1)

    def find(self, request_id: str) -> Exchange | None:
        """What was asked under this id."""
        place = self._place_of(request_id)
        return self.conversations[place[0]].exchanges[place[1]] if place is not None else None

    def received(self, message: Text | Finished | Rejected) -> tuple[int, int] | None:
        """Take a message; returns the places of chat and exchange that it changed. Of a chat that is gone, nothing."""
        return self.change(message.request_id, lambda exchange: exchange.received(message))

    def change(self, request_id: str, change: Callable[[Exchange], Exchange]) -> tuple[int, int] | None:
        """Change one exchange; returns the places of its chat and of itself."""
        found = self._place_of(request_id)
        if found is not None:
            place, index = found
            self._put(place, index, change(self.conversations[place].exchanges[index]))
        return found

    def _place_of(self, request_id: str) -> tuple[int, int] | None:
        for place, conversation in enumerate(self.conversations):
            for index, exchange in enumerate(conversation.exchanges):
                if exchange.request_id == request_id:
                    return place, index
        return None

    def restore(self, answered: Answered) -> None:
        """Take what a session answered while no window was there; a chat that is not known is shown anew."""
        chat = answered.chat
        if self.find(chat.request_id) is None:
            self.conversations.insert(0, _conversation_of(chat))
            self.place = 0
        error = answered.error or None
        self.change(
            chat.request_id,
            lambda known: replace(known, answer=answered.text, finished=answered.finished, error=error, pause=""),
        )

    def change_open(self, change: Callable[[Exchange], Exchange]) -> list[int]:
        """Change every open exchange; returns the indexes of those that are shown."""
        shown = []
        for place, conversation in enumerate(self.conversations):
            for index, exchange in enumerate(conversation.exchanges):
                if exchange.open:
                    self._put(place, index, change(exchange))
                    if place == self.place:
                        shown.append(index)
        return shown

    def _put(self, place: int, index: int, exchange: Exchange) -> None:
        conversation = self.conversations[place]
        exchanges = (*conversation.exchanges[:index], exchange, *conversation.exchanges[index + 1 :])
        self.conversations[place] = replace(conversation, exchanges=exchanges)


def _conversation_of(chat: Chat) -> Conversation:
    """A chat as its newest request tells it."""
    system = "\n".join(message.content for message in chat.messages if message.role == "system")
    settings = ChatSettings(system, chat.temperature, chat.top_p, chat.max_tokens, chat.seed)
    said = [message for message in chat.messages if message.role != "system"]
    exchanges = [
        Exchange(uuid4().hex, question.content, answer.content, quoted=True)
        for question, answer in zip(said[:-1:2], said[1:-1:2], strict=False)
    ]
    return Conversation((*exchanges, Exchange(chat.request_id, said[-1].content)), settings)
