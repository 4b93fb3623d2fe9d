/* The container backend's image. */
#pragma once

#include "../base/error.h"

struct image_build {
        const char *engine; /* auto, docker, podman; NULL: auto */
        const char *image;  /* its name */
        const char *file;   /* a Dockerfile; NULL: hutch's own recipe */
        const char *rootfs; /* instead: a directory or a tar of a root file system */
        int output;         /* for what the engine prints; -1: nowhere */
};

int image_build(const struct image_build *what, struct hutch_error *err);

/* Builds hutch's own recipe under that name if there is no such image. */
int image_ensure(const char *engine, const char *image, struct hutch_error *err);
