/* hutch image: the container backend's image. */
#include "cli.h"

#include <unistd.h>

#include "verbs.h"

struct image_options {
        const char *rootfs, *tag, *engine;
};

#define AT(field) OPTION_AT(struct image_options, field)

static const struct option options[] = {
        {"rootfs", 0, "DIR|TAR", "make it of a root file system, without a registry", AT(rootfs)},
        {"tag", 0, "NAME", "call it this (default: hutch-sandbox:latest)", AT(tag)},
        {"engine", 0, "docker|podman", "the engine (default: whichever answers)", AT(engine)},
        {0},
};

static int build(const struct invocation *in) {
        const struct image_options *o = in->options;
        const hutch_image_options how = {.struct_size = sizeof(how),
                                         .engine = o->engine,
                                         .image = o->tag,
                                         .file = in->n_args ? in->args[0] : NULL,
                                         .rootfs = o->rootfs,
                                         .output = STDERR_FILENO};
        hutch_error err;

        if (hutch_image_build(&how, &err) >= 0)
                return 0;
        cli_complain("image build: %s", err.message);
        return EXIT_HUTCH;
}

static const struct verb build_verb = {.name = "build",
                                       .synopsis = "[OPTIONS] [FILE]",
                                       .summary = "build the image, by hutch's own recipe or a Dockerfile",
                                       .max_args = 1,
                                       .options = options,
                                       .size = sizeof(struct image_options),
                                       .run = build};

static const struct verb *const subverbs[] = {&build_verb, NULL};

const struct verb verb_image = {
        .name = "image", .synopsis = "build …", .summary = "the container backend's image", .subverbs = subverbs};
