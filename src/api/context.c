/* Contexts: which process is the warden. */
#include <errno.h>

#include "../warden/client.h"
#include "../warden/spawn.h"
#include "api.h"

int hutch_context_new(hutch_warden kind, hutch_context **ret, hutch_error *err) {
        if (!ret)
                return api_null(err, __func__, "ret");
        hutch_context *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return error_oom(err);
        c->kind = kind;
        c->warden = -1;
        r = host_facts_read(&c->facts, err);
        if (r >= 0 && kind == HUTCH_WARDEN_PROCESS)
                r = warden_spawn(&c->warden, &c->warden_pid, err);
        if (r < 0) {
                error_stage(err, "context");
                hutch_context_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

void hutch_context_free(hutch_context *context) {
        if (!context)
                return;
        closep(&context->warden);
        warden_reap(context->warden_pid);
        free(context);
}

int context_probe(hutch_context *context, struct probes *ret, struct hutch_error *err) {
        return context->kind == HUTCH_WARDEN_SELF ? host_probe(ret, err)
                                                  : warden_client_probe(context->warden, ret, err);
}

int hutch_backend_available(hutch_context *context, const char *backend, hutch_error *err) {
        if (!context)
                return api_null(err, __func__, "context");
        if (!backend)
                return api_null(err, __func__, "backend");
        struct host_facts facts = context->facts;
        const struct backend *chosen;
        struct probes probes;
        int r;

        r = context_probe(context, &probes, err);
        if (r < 0)
                return r;
        facts.namespaces = doctor_is_strong(&probes) ? YES : NO;
        doctor_first_gap(&probes, facts.namespaces_reason, sizeof(facts.namespaces_reason));
        return backend_choose(backend_rows, backend, &facts, &chosen, err);
}
