"""Talk to an afterslip server."""

from afterslip.client.client import Client
from afterslip.client.errors import ApiError, CampaignError, NoServerError

__all__ = ["ApiError", "CampaignError", "Client", "NoServerError"]
