"""Talk to an afterslip server."""

from afterslip.client.async_client import AsyncClient
from afterslip.client.client import Client
from afterslip.client.errors import ApiError, CampaignError, NoServerError

__all__ = ["ApiError", "AsyncClient", "CampaignError", "Client", "NoServerError"]
