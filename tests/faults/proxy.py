"""A network that can be cut: what passes between two processes."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Forwards connections to a port of this machine until it is cut.

    Attributes
    ----------
    port : where it listens.
    target : port to which it forwards; while it is None, connections are refused.
    """

    def __init__(self, target):
        self.target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._open = set()
        self._lock = threading.Lock()
        self._whole = threading.Event()
        self._whole.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Let nothing pass any more, in either direction, without a word.

        New connections are taken and get no answer, as behind a dead switch.
        """
        self._whole.clear()

    def restore(self):
        """Break what was open while nothing passed, and let everything pass again."""
        with self._lock:
            old, self._open = self._open, set()
        for side in old:
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()
        self._whole.set()

    def close(self):
        """Stop."""
        self._listening.close()
        self.restore()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listening.accept()
                threading.Thread(target=self._join, args=(ours,), daemon=True).start()

    def _join(self, ours):
        self._whole.wait()
        target = self.target
        try:
            if target is None:
                raise ConnectionRefusedError
            theirs = socket.create_connection(("127.0.0.1", target))
        except OSError:
            ours.close()
            return
        with self._lock:
            self._open |= {ours, theirs}
        back = threading.Thread(target=self._pass_on, args=(theirs, ours), daemon=True)
        back.start()
        self._pass_on(ours, theirs)
        back.join()
        with self._lock:
            self._open -= {ours, theirs}
        ours.close()
        theirs.close()

    def _pass_on(self, one, other):
        with contextlib.suppress(OSError):
            while piece := one.recv(1 << 16):
                self._whole.wait()
                other.sendall(piece)
        for side in (one, other):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
