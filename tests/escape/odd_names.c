/* A workspace and rules whose names hold a newline, a backslash, blanks, mountinfo's own escapes and bytes that are no UTF-8.
 *
 * Whoever passes such a name through a text (mountinfo, JSON, a list of lines) lays the rule somewhere else. It must fail because a
 * rule holds for exactly the file it names.
 *
 * setup: ws=$base/now/$'w s\n\\012\t\xff:x'; ws=${ws%:x}; mkdir "$ws" "$ws"/$'ro\n1 2 3\\040\xfe' "$ws"/$'hide\\134\n/../x' 2>/dev/null; mkdir -p "$ws"/$'hide\\134\n'; in=$ws; cd "$ws"
 * setup: echo old >"$ws"/$'ro\n1 2 3\\040\xfe/file'; echo "$token" >"$ws"/$'hide\\134\n/file'; echo "$token" >"$ws"/$'file\\\n\xc3\x28'
 * options: --ro "$ws"/$'ro\n1 2 3\\040\xfe' --hide "$ws"/$'hide\\134\n' --hide "$ws"/$'file\\\n\xc3\x28'
 * args: "$in" $'ro\n1 2 3\\040\xfe/file' $'hide\\134\n/file' $'file\\\n\xc3\x28'
 * check: [ "$(cat "$ws"/$'ro\n1 2 3\\040\xfe/file')" != old ] */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 5 || chdir(argv[1]) < 0)
                return UNTRIED;
        return can_write(argv[2]) || has_secret(argv[3]) || has_secret(argv[4]) ? ESCAPED : STOPPED;
}
