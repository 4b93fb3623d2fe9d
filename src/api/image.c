/* hutch_image_build(); see src/backend/image.h. */
#include "../backend/image.h"

#include "../plan/plan.h"
#include "api.h"

int hutch_image_build(const hutch_image_options *given, hutch_error *err) {
        struct hutch_image_options options;

        api_read_struct(given, sizeof(options), &options, sizeof(options));
        return image_build(&(struct image_build){.engine = options.engine,
                                                 .image = options.image ? options.image : DEFAULT_IMAGE,
                                                 .file = options.file,
                                                 .rootfs = options.rootfs,
                                                 .output = options.output > 0 ? options.output : -1},
                           err);
}
