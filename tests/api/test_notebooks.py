"""What a notebook shows of campaigns and inversions."""

from afterslip.client.campaign import CampaignHandle
from afterslip.client.inversion import Inversion
from afterslip.client.transport import Transport

# without a connection: a request would fail
NOWHERE = object.__new__(Transport)


def test_a_campaign_shows_what_is_at_hand_and_no_markup_of_others():
    data = {
        "id": "c",
        "name": "<b>loud</b>",
        "state": "failed",
        "progress": {"total": 5, "accepted": 3, "failed": 1},
        "error": {"class": "oom", "message": "a < b"},
    }
    text = CampaignHandle(NOWHERE, data)._repr_html_()
    assert "<b>" not in text
    for part in ("&lt;b&gt;loud", "oom: a &lt; b", "3 of 5 accept", "groups failed"):
        assert part in text


def test_an_inversion_shows_its_numbers_with_their_intervals():
    summary = {
        "magnitude": 6.333,
        "magnitude_interval": [6.31, 6.352],
        "peak_slip": 0.789,
        "peak_slip_average": 0.742,
        "peak_slip_length": 5e3,
        "peak_slip_interval": [0.7, 0.781],
        "score": 1.3,
        "warnings": ["look twice"],
    }
    data = {"id": "i", "name": "coseismic", "state": "accepted", "summary": summary}
    shown = Inversion(NOWHERE, data)._repr_html_()
    # the largest slip itself has no limits
    largest = "0.79 m, mean over 5 km 0.74 m (0.70 to 0.78)"
    for part in ("6.33 (6.31 to 6.35)", largest, "1.30", "look twice"):
        assert part in shown
    assert "variance reduction" not in shown
