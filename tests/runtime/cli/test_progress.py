"""A session's way to ready, in the terminal's lines."""

from runtime.cli.progress import Progress
from runtime.cluster.messages import LoadProgress, ModelFetch

GB = 1_000_000_000


def loads(done_bytes, bytes_per_second=0.0, seconds_left=None):
    return LoadProgress(0, "studio", "Studio", "loading", done_bytes, 40 * GB, bytes_per_second, seconds_left)


def test_a_long_load_is_told_by_tenths_with_its_rate(capsys):
    progress = Progress()
    for event in (loads(0), loads(GB), loads(4 * GB, 2e9, 18.0), loads(5 * GB, 2e9, 17.5), loads(9 * GB, 2.5e9, 12.4)):
        progress.tell(event)
    assert capsys.readouterr().err.splitlines() == [
        "Studio: loading 38147 MB",
        "Studio: 4.00 of 40.00 GB, 2000 MB/s, 18 s left",
        "Studio: 9.00 of 40.00 GB, 2500 MB/s, 12 s left",
    ]


def test_a_fetch_is_told_by_tenths_too_and_apart_from_loading(capsys):
    progress = Progress()
    progress.tell(loads(20 * GB, 2e9, 10.0))
    progress.tell(ModelFetch("studio", "Studio", "", 2 * GB, 40 * GB, 1e9, 38.0))
    progress.tell(ModelFetch("studio", "Studio", "", 3 * GB, 40 * GB, 1e9, 37.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "Studio: 2.00 of 40.00 GB, 1000 MB/s, 38 s left"
