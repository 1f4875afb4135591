"""What the token loop itself costs: ``python -m tests.bench.loop [--tokens 150] [--idle-seconds 20]``.

Three stages of the demo model as worker processes. One stream's time per token against what it cannot be without: the
stages' own computing and the hops. Then how soon a cancel makes room, and what the workers cost while nothing runs.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import psutil

from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import CancelRequest, CarriedArray, Done, Generated, Prefilled, Sampling, Step, Submit
from runtime.engine.hop import HopError, Receiver, Sender
from runtime.engine.orders import CacheLimits
from runtime.models.demo import demo_model_folder
from runtime.models.layout import read_layout
from runtime.planning.plan import Plan, PlanNode, make_plan

if TYPE_CHECKING:
    from pathlib import Path

SPLIT = (10, 10, 10)
PROMPT = (504,)
"""One token, so that every step is one of decoding: a chunk of a prompt costs more."""
ROUNDS = 5
HIDDEN_BYTES = 576 * 4
ECHOES = 2000
COST_LIMIT, CANCEL_LIMIT_STEPS, IDLE_LIMIT = 0.05, 2, 0.02
STATISTICS_SECONDS = 1.5
"""Workers have reported their counters once they stand still for so long."""
ROOM_TOKENS = 400


def plan(folder: Path) -> Plan:
    """Three even stages."""
    nodes = [PlanNode(str(index), f"rank {index}", 1 << 40) for index in range(len(SPLIT))]
    made = make_plan(read_layout(folder), nodes, SPLIT, context_tokens=0)  # so that the job's limits count alone
    if not isinstance(made, Plan):
        raise SystemExit(made.reason)
    return made


async def hop_seconds() -> float:
    """One way of one token's hidden state between two processes, framed as the stages do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.loop", "--echo", str(listener.getsockname()[1])
        )
        there, _ = await asyncio.to_thread(listener.accept)
        back, _ = await asyncio.to_thread(listener.accept)
    with Sender(there) as sender, Receiver(back, HIDDEN_BYTES) as receiver:
        seconds = await asyncio.to_thread(_echo_times, sender, receiver)
    await other.wait()
    return seconds


def _echo_times(sender: Sender, receiver: Receiver) -> float:
    carried = (CarriedArray("hidden", "float32", (1, 1, HIDDEN_BYTES // 4)),)
    step = Step(0, (0,), (100,), (17,), sample=True, carried=carried, stage_seconds=(0.01,))
    payload = bytes(HIDDEN_BYTES)
    times = []
    for _ in range(ECHOES):
        begin = time.perf_counter()
        sender.send(step, payload)
        receiver.receive()
        times.append((time.perf_counter() - begin) / 2)
    return median(times)


def echo(port: int) -> None:
    """The other process: sends back what comes."""
    there, back = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
    with Receiver(there, HIDDEN_BYTES) as receiver, Sender(back) as sender:
        while True:
            try:
                sender.send(*receiver.receive())
            except HopError:
                return


async def stream(ranks: LocalRanks, request: int, tokens: int) -> float:
    """Seconds per token of one stream, from its first token to its last."""
    await ranks.send(Submit(request, PROMPT, tokens, (), Sampling()))
    times = []
    while not isinstance(frame := await ranks.next_frame(), Done):
        if isinstance(frame, Generated):
            times.append(time.perf_counter())
    return (times[-1] - times[0]) / (len(times) - 1)


async def compute_seconds(ranks: LocalRanks) -> list[tuple[float, int]]:
    """Of each rank, its time in steps and their number, once they have reported all."""
    last: list[tuple[float, int]] = []
    while True:
        newest = [
            (rank.statistics.compute_seconds, rank.statistics.steps) if rank.statistics else (0.0, 0)
            for rank in ranks.ranks
        ]
        if newest == last and all(steps for _, steps in newest):
            return newest
        last = newest
        await asyncio.sleep(STATISTICS_SECONDS)


async def loop_cost(ranks: LocalRanks, tokens: int) -> None:
    """Print what one stream's token costs beside computing and hops."""
    one_hop = await hop_seconds()
    await stream(ranks, 0, tokens)  # warm
    shares = []
    for turn in range(ROUNDS):
        before = await compute_seconds(ranks)
        token_seconds = await stream(ranks, turn + 1, tokens)
        after = await compute_seconds(ranks)
        compute = sum(
            (seconds - seconds_before) / (steps - steps_before)
            for (seconds_before, steps_before), (seconds, steps) in zip(before, after, strict=True)
        )
        hops = one_hop * len(SPLIT)
        shares.append(token_seconds / (compute + hops) - 1)
        parts = f"{1000 * compute:.2f} ms in stages, {1000 * hops:.2f} ms in hops"
        print(f"  {1000 * token_seconds:7.2f} ms a token: {parts}, {100 * shares[-1]:.1f} % beside", flush=True)
    _verdict("cost of the loop, one stream, median", median(shares), COST_LIMIT)


async def cancels(ranks: LocalRanks) -> None:
    """Print after how many steps a cancelled request is over, and the one that waited for its room has a token."""
    over, begun = [], []
    for turn in range(ROUNDS):
        first = 1000 * (turn + 1)
        for request in range(first, first + 4):
            await ranks.send(Submit(request, PROMPT, ROOM_TOKENS // 4 - 1, (), Sampling()))
        await ranks.send(Submit(first + 4, PROMPT, ROOM_TOKENS // 4 - 1, (), Sampling()))  # waits for room
        seen: set[int] = set()
        steps, cancelled_at, open_requests = 0, 0, 5
        while open_requests:
            frame = await ranks.next_frame()
            if isinstance(frame, Generated):
                steps += 1
                if first + 4 in frame.requests and first + 4 not in seen:
                    begun.append(steps - cancelled_at)
                seen.update(frame.requests)
                if first + 4 in seen and not cancelled_at:
                    raise SystemExit("there was room for the fifth request, so nothing waits for a cancel")
                if len(seen) == 4 and not cancelled_at:
                    cancelled_at = steps
                    await ranks.send(CancelRequest(first))
                if first + 4 in seen and open_requests > 3:
                    for request in range(first + 1, first + 5):
                        await ranks.send(CancelRequest(request))
            elif isinstance(frame, Done):
                open_requests -= 1
                if frame.request == first:
                    over.append(steps - cancelled_at)
            else:
                assert isinstance(frame, Prefilled)
    print(f"  the next request's first token came after {begun} steps")
    _verdict("steps from a cancel to its end, most", max(over), CANCEL_LIMIT_STEPS, unit="")


async def idle(ranks: LocalRanks, seconds: float) -> None:
    """Print what share of a core the workers take while nothing runs."""
    workers = [psutil.Process(pid) for pid in ranks.pids]
    await asyncio.sleep(1)
    before = sum(sum(worker.cpu_times()[:2]) for worker in workers)
    await asyncio.sleep(seconds)
    used = sum(sum(worker.cpu_times()[:2]) for worker in workers) - before
    _verdict(f"of a core, {len(workers)} loaded stages idle for {seconds:g} s", used / seconds, IDLE_LIMIT)


def _verdict(what: str, value: float, limit: float, unit: str = "%") -> None:
    scale = 100 if unit == "%" else 1
    verdict = "ok" if value <= limit else "ABOVE"
    print(f"{what}: {scale * value:.2f} {unit} (at most {scale * limit:g}) {verdict}", flush=True)


async def run(tokens: int, idle_seconds: float) -> None:
    """All three."""
    folder = demo_model_folder()
    async with LocalRanks(plan(folder), folder) as ranks:
        await loop_cost(ranks, tokens)
        await idle(ranks, idle_seconds)
    async with LocalRanks(plan(folder), folder, CacheLimits(ROOM_TOKENS)) as ranks:
        await cancels(ranks)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.loop")
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--idle-seconds", type=float, default=20)
    parser.add_argument("--echo", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        echo(options.echo)
    else:
        asyncio.run(run(options.tokens, options.idle_seconds))


if __name__ == "__main__":
    main()
