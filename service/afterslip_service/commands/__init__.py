"""Verbs that need the service: each is a function for ``app.command(name)``."""

from afterslip_service.commands.bench import bench
from afterslip_service.commands.dispatch import dispatch
from afterslip_service.commands.doctor import doctor
from afterslip_service.commands.fsck import fsck
from afterslip_service.commands.run import run
from afterslip_service.commands.serve import serve
from afterslip_service.commands.worker import worker

__all__ = ["bench", "dispatch", "doctor", "fsck", "run", "serve", "worker"]
