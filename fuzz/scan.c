/* Scripts as an agent, or a stranger's repository, brings them: the first byte chooses the language, 0 leaves that to the
 * scanner. Every finding is at a place of the text. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "scan/scan.h"
#include "scan_rules.h"

static const unsigned languages[] = {0, LANG_SHELL, LANG_PYTHON, LANG_JAVASCRIPT, LANG_OTHER, LANG_MARKDOWN, LANG_MANIFEST};

static struct rules *rules(void) {
        static struct rules *all;
        struct hutch_error err;

        if (!all && (rules_new(false, &all, &err) < 0 ||
                     rules_add_yaml(all, "rules", scan_rules, sizeof(scan_rules) - 1, &err) < 0 || rules_finish(all, &err) < 0))
                abort();
        return all;
}

static void check(const struct finding *f, size_t len) {
        if (f->line < 1 || f->line > len + 1 || f->column < 1 || f->column > len + 1)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        _cleanup_(freep) char *text = NULL;
        struct scan s;

        if (len == 0)
                return 0;
        text = strndup((const char *) data + 1, len - 1);
        if (!text)
                return 0;
        scan_init(&s, rules());
        scan_file(&s, "input", text, strlen(text), languages[data[0] % ARRAY_SIZE(languages)]);
        for (size_t i = 0; i < s.n_findings; i++)
                check(&s.findings[i], strlen(text));
        scan_done(&s);
        return 0;
}
