"""The bar of a contest: what goes on, how far it is, how much time is left; silent where nobody looks."""

from toprank._progress import steps


def test_on_a_terminal(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the stream for a terminal
    with steps({"ListNet": 4}, most=100.0, show=True) as tell:
        tell("fold 1/2, ListNet")
        for _ in range(2):
            tell("fold 1/2, ListNet", "ListNet", 0.01)
    told = capfd.readouterr().err
    assert "fold 1/2, ListNet" in told
    assert "2/4" in told
    assert "0:00 left" in told


def test_elsewhere(capfd):
    with steps({"ListNet": 4}) as tell:
        tell("fold 1/2, ListNet", "ListNet", 1.0)
    assert capfd.readouterr() == ("", "")
