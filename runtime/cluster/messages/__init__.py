"""What a front end (the window, the console) and the controller say to each other.

JSON text frames on one loopback WebSocket, one tagged struct each. Decoding checks every field. All of them are to be
had here; a module for each subject has them.
"""

from __future__ import annotations

from runtime.cluster.messages.answering import Answered, Finished, FinishReason, Rejected, Text
from runtime.cluster.messages.asked import Cancel, Chat, ChatMessage, Rebalance, Resplit, Role, Serve, Stop
from runtime.cluster.messages.base import Message
from runtime.cluster.messages.ending import Ended, Ending, Failed, MemoryBack, PlanRefused, Recovering
from runtime.cluster.messages.loading import (
    LoadPhase,
    LoadProgress,
    ModelFetch,
    Opened,
    RankHeld,
    Ready,
    ServeRefused,
    Serving,
    UsedLink,
)
from runtime.cluster.messages.measuring import MeasuredStage, RunMeasured, StageTimes, Statistics, Throughput

__all__ = [
    "FRAME_LIMIT_BYTES",
    "SESSION_PATH",
    "Answered",
    "Cancel",
    "Chat",
    "ChatMessage",
    "ClientMessage",
    "Ended",
    "Ending",
    "Failed",
    "FinishReason",
    "Finished",
    "LoadPhase",
    "LoadProgress",
    "MeasuredStage",
    "MemoryBack",
    "Message",
    "ModelFetch",
    "Opened",
    "PlanRefused",
    "RankHeld",
    "Ready",
    "Rebalance",
    "Recovering",
    "Rejected",
    "Resplit",
    "Role",
    "RunMeasured",
    "Serve",
    "ServeRefused",
    "ServerMessage",
    "Serving",
    "StageTimes",
    "Statistics",
    "Stop",
    "Text",
    "Throughput",
    "UsedLink",
]

SESSION_PATH = "/v1/session"
FRAME_LIMIT_BYTES = 16 << 20
"""Room for a chat of a million tokens."""

ClientMessage = Chat | Cancel | Resplit | Rebalance | Serve | Stop
ServerMessage = (
    ModelFetch
    | LoadProgress
    | Ready
    | Serving
    | ServeRefused
    | Text
    | Finished
    | Rejected
    | Answered
    | PlanRefused
    | Throughput
    | Statistics
    | Recovering
    | RunMeasured
    | Ending
    | Failed
    | Ended
)
