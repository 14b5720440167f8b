"""What the driver tells of single processes, and what it does not."""

import os
import sys
from types import SimpleNamespace

import pytest

from afterslip_workers.machine import gpu_use
from afterslip_workers.process.use import measure

MIB = 1 << 20
OWN, CHILD, OTHER = 11, 12, 99


class DriverError(Exception):
    """As NVML raises it, with its number."""

    def __init__(self, value):
        super().__init__(value)
        self.value = value


def held(pid, memory):
    return SimpleNamespace(pid=pid, usedGpuMemory=memory)


def sample(pid, percent, time=1):
    return SimpleNamespace(pid=pid, smUtil=percent, timeStamp=time)


def or_error(answer):
    if isinstance(answer, int):
        raise DriverError(answer)
    return answer


def made(gpus, start):
    """NVML with GPUs of given processes and samples; a number is its error."""
    asked = []

    def utilization(gpu, since):
        asked.append(since)
        return or_error(gpu[1])

    return SimpleNamespace(
        asked=asked,
        NVMLError=DriverError,
        nvmlInit=lambda: or_error(start),
        nvmlDeviceGetCount=lambda: len(gpus),
        nvmlDeviceGetHandleByIndex=lambda index: gpus[index],
        nvmlDeviceGetComputeRunningProcesses=lambda gpu: or_error(gpu[0]),
        nvmlDeviceGetProcessUtilization=utilization,
    )


@pytest.fixture
def driver(monkeypatch):
    """Put a driver in the place of the machine's."""

    def put(*gpus, start=None):
        module = made(gpus, start)
        monkeypatch.setitem(sys.modules, "pynvml", module)
        gpu_use._nvml.cache_clear()
        gpu_use._sampled.clear()
        return module

    yield put
    gpu_use._nvml.cache_clear()
    gpu_use._sampled.clear()


def test_processes_of_others_on_the_same_gpu_are_not_counted(driver):
    running = [held(OTHER, 900 * MIB), held(OWN, 300 * MIB), held(CHILD, 50 * MIB)]
    driver((running, [sample(OTHER, 70), sample(OWN, 5), sample(CHILD, 21)]))
    found = gpu_use.used_by({OWN, CHILD})
    assert found == {
        "gpu_process_memory": 350 * MIB,
        "gpu_process_utilization": 26,
    }


def test_the_newest_sample_counts_and_is_not_asked_for_again(driver):
    samples = [sample(CHILD, 90, time=40), sample(CHILD, 10, time=70)]
    nvml = driver(([held(CHILD, MIB)], samples))
    assert gpu_use.used_by({CHILD})["gpu_process_utilization"] == 10
    gpu_use.used_by({CHILD})
    assert nvml.asked == [0, 70]


def test_memory_of_all_gpus_is_summed_and_the_busiest_reported(driver):
    driver(
        ([held(OWN, MIB)], [sample(OWN, 30)]),
        ([held(OWN, 2 * MIB)], [sample(OWN, 80)]),
        ([held(OTHER, MIB)], [sample(OTHER, 100)]),
    )
    found = gpu_use.used_by({OWN})
    assert found == {"gpu_process_memory": 3 * MIB, "gpu_process_utilization": 80}


NOT_SUPPORTED, NO_PERMISSION = 3, 4


@pytest.mark.parametrize("error", [gpu_use.SUCCESS, gpu_use.NOT_FOUND])
def test_a_process_that_holds_memory_and_computes_nothing_is_idle(driver, error):
    driver(([held(OWN, MIB)], error))
    assert gpu_use.used_by({OWN})["gpu_process_utilization"] == 0


@pytest.mark.parametrize(
    ("gpu", "found"),
    [
        # a part of a GPU (MIG) has no utilization of processes
        (([held(OWN, MIB)], NOT_SUPPORTED), {"gpu_process_memory": MIB}),
        # memory that is not reported is not zero
        (([held(OWN, None)], [sample(OWN, 7)]), {"gpu_process_utilization": 7}),
        # a container whose processes the driver numbers otherwise
        (([held(OTHER, MIB)], [sample(OTHER, 7)]), {}),
        ((NO_PERMISSION, NO_PERMISSION), {}),
    ],
)
def test_what_the_driver_does_not_tell_is_missing(driver, gpu, found):
    driver(gpu)
    assert gpu_use.used_by({OWN}) == found


def test_without_a_driver_nothing_is_reported(driver, monkeypatch):
    driver(start=9)
    assert gpu_use.used_by({OWN}) == {}
    monkeypatch.setitem(sys.modules, "pynvml", None)
    gpu_use._nvml.cache_clear()
    assert gpu_use.used_by({OWN}) == {}


def test_a_worker_reports_what_its_own_processes_use(driver):
    driver(([held(os.getpid(), 4 * MIB), held(1, MIB)], [sample(os.getpid(), 33)]))
    found = measure()
    assert found["gpu_process_memory"] == 4 * MIB
    assert found["gpu_process_utilization"] == 33
