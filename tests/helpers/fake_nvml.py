"""A stand-in for the driver's NVML library: a real shared library with the GPUs one asks for.

``FAKE_GPUS`` holds ``UUID,NAME,BYTES`` per GPU, with semicolons between; ``FAKE_NVML_ERROR`` is the
code with which the library refuses to start. Each is busy for 40 % of the time, and a fifth full.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory { unsigned long long total, free, used; };
struct utilization { unsigned gpu, memory; };

static int field(unsigned long device, int number, char *out, size_t size) {
    char *text = strdup(getenv("FAKE_GPUS") ? getenv("FAKE_GPUS") : ""), *rest = text, *gpu;
    for (unsigned long i = 1; (gpu = strsep(&rest, ";")) && *gpu; i++) {
        if (i != device) continue;
        char *part = NULL;
        for (int n = 0; n <= number; n++) part = strsep(&gpu, ",");
        snprintf(out, size, "%s", part ? part : "");
        free(text);
        return 0;
    }
    free(text);
    return 6;  /* NVML_ERROR_NOT_FOUND */
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return getenv("FAKE_NVML_ERROR") ? atoi(getenv("FAKE_NVML_ERROR")) : 0;
}
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "GPU is lost"; }
int nvmlDeviceGetCount_v2(unsigned *count) {
    char text[256];
    for (*count = 0; !field(*count + 1, 0, text, sizeof text); ++*count);
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (void *)(unsigned long)(index + 1);
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    char text[256];
    for (unsigned long i = 1; !field(i, 0, text, sizeof text); i++)
        if (!strcmp(text, uuid)) { *device = (void *)i; return 0; }
    return 6;
}
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates) {
    (void)device;
    rates->gpu = 40;
    rates->memory = 10;
    return 0;
}
int nvmlDeviceGetUUID(void *device, char *out, unsigned size) {
    return field((unsigned long)device, 0, out, size);
}
int nvmlDeviceGetName(void *device, char *out, unsigned size) {
    return field((unsigned long)device, 1, out, size);
}
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory) {
    char text[64];
    int code = field((unsigned long)device, 2, text, sizeof text);
    memory->total = strtoull(text, NULL, 10);
    memory->used = memory->total / 5;
    memory->free = memory->total - memory->used;
    return strcmp(text, "lost") ? code : 15;
}
"""


def build(folder: Path) -> Path:
    """Compile the library and return the folder for LD_LIBRARY_PATH."""
    source = folder / "nvml.c"
    source.write_text(SOURCE)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        ["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(library), str(source)], check=True
    )
    return folder


def fake_gpus(*memories: int | str) -> str:
    """Return a value of FAKE_GPUS: one GPU per size of its memory."""
    return ";".join(
        f"GPU-{number}{number}{number}{number}-feed,Tensor {number},{memory}"
        for number, memory in enumerate(memories)
    )
