"""The client of an event loop against a real service."""

import asyncio

import pytest
import tiny_worker

from afterslip import ApiError, AsyncClient


async def program(url):
    async with AsyncClient(url) as client:
        names = ("one", "two", "three")
        made = [await client.submit(tiny_worker.spec(), key=name) for name in names]
        again = await client.submit(tiny_worker.spec(), key="one")
        assert again.id == made[0].id
        async with asyncio.timeout(60):
            await asyncio.gather(*(c.wait(inversions=False) for c in made))
        assert [c.state for c in made] == ["complete"] * 3
        assert {c.id for c in await client.campaigns()} == {c.id for c in made}
        groups = await made[0].groups()
        assert groups
        assert {g["state"] for g in groups} == {"accepted"}
        kinds = [event.kind async for event in made[0].events()]
        assert kinds[-1] == "campaign.state"
        greens = await made[0].greens()
        assert greens.sizes["source"] > 0
        changed = await made[1].change(name="second")
        assert changed is made[1]
        assert (await client.campaign("second")).id == made[1].id
        with pytest.raises(ApiError) as refused:
            await made[2].invert(["nothing"])
        assert refused.value.status in (404, 422)
        return kinds


def test_campaigns_are_submitted_followed_and_read(client):
    assert "group.state" in asyncio.run(program(str(client.base_url)))
