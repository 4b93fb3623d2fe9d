/* The configuration of a relay as bytes. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/strv.h"
#include "../base/wire.h"

void relay_config_encode(const struct relay_config *config, struct buf *b) {
        wire_put_u32(b, (config->outbound ? 1u : 0) | (config->strict ? 2u : 0) | (config->publish_auto ? 4u : 0) |
                                (config->shared ? 8u : 0));
        wire_put_str(b, config->log);
        wire_put_str(b, config->proxy);
        wire_put_strv(b, config->rules);
        wire_put_strv(b, config->origins);
        wire_put_strv(b, config->host_ports);
        wire_put_strv(b, config->publish);
        wire_put_strv(b, config->credentials);
        wire_put_strv(b, config->credential_origins);
}

void relay_config_get(struct wire_reader *r, struct relay_config *ret) {
        uint32_t flags = wire_get_u32(r);

        *ret = (struct relay_config){
                .outbound = flags & 1, .strict = flags & 2, .publish_auto = flags & 4, .shared = flags & 8};
        ret->log = wire_get_str(r);
        ret->proxy = wire_get_str(r);
        ret->rules = wire_get_strv(r);
        ret->origins = wire_get_strv(r);
        if (strv_length(ret->origins) != strv_length(ret->rules))
                r->failed = true;
        ret->host_ports = wire_get_strv(r);
        ret->publish = wire_get_strv(r);
        ret->credentials = wire_get_strv(r);
        ret->credential_origins = wire_get_strv(r);
        if (strv_length(ret->credential_origins) != strv_length(ret->credentials))
                r->failed = true;
}

int relay_config_decode(const void *data, size_t len, struct relay_config *ret) {
        struct wire_reader r = {.data = data, .left = len};
        struct relay_config config;

        relay_config_get(&r, &config);
        if (r.failed || r.left) {
                relay_config_done(&config);
                return -EBADMSG;
        }
        *ret = config;
        return 0;
}

bool relay_config_is_needed(const struct relay_config *config) {
        return config->outbound || strv_length(config->host_ports) > 0 || strv_length(config->publish) > 0 ||
               config->publish_auto;
}

void relay_config_forget_secrets(struct relay_config *config) {
        if (config->proxy)
                explicit_bzero(config->proxy, strlen(config->proxy));
        free(config->proxy);
        config->proxy = NULL;
}

void relay_config_done(struct relay_config *config) {
        free(config->log);
        relay_config_forget_secrets(config);
        strv_free(config->rules);
        strv_free(config->origins);
        strv_free(config->host_ports);
        strv_free(config->publish);
        strv_free(config->credentials);
        strv_free(config->credential_origins);
        *config = (struct relay_config){0};
}
