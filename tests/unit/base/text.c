/* Text from strangers. */
#include "base/text.h"

#include "unit.h"

#define BYTES(s) (s), sizeof(s) - 1

static const struct utf8_row {
        const char *name, *text;
        size_t len;
        bool valid;
        size_t cut; /* how much of its end is a begun character */
} utf8_rows[] = {
        {"nothing", BYTES(""), true, 0},
        {"ASCII", BYTES("abc"), true, 0},
        {"a NUL is a character", BYTES("a\0b"), true, 0},
        {"DEL", BYTES("\x7f"), true, 0},
        {"two bytes, the first", BYTES("\xc2\x80"), true, 0},
        {"two bytes, the last", BYTES("\xdf\xbf"), true, 0},
        {"three bytes, the first", BYTES("\xe0\xa0\x80"), true, 0},
        {"three bytes, the last", BYTES("\xef\xbf\xbf"), true, 0},
        {"four bytes, the first", BYTES("\xf0\x90\x80\x80"), true, 0},
        {"four bytes, the last (U+10FFFF)", BYTES("\xf4\x8f\xbf\xbf"), true, 0},
        {"just below the surrogates", BYTES("\xed\x9f\xbf"), true, 0},
        {"just above the surrogates", BYTES("\xee\x80\x80"), true, 0},
        {"the first surrogate", BYTES("\xed\xa0\x80"), false, 0},
        {"the last surrogate", BYTES("\xed\xbf\xbf"), false, 0},
        {"above U+10FFFF", BYTES("\xf4\x90\x80\x80"), false, 0},
        {"overlong slash, two bytes", BYTES("\xc0\xaf"), false, 0},
        {"overlong, two bytes, c1", BYTES("\xc1\xbf"), false, 0},
        {"overlong slash, three bytes", BYTES("\xe0\x80\xaf"), false, 0},
        {"overlong slash, four bytes", BYTES("\xf0\x80\x80\xaf"), false, 0},
        {"overlong NUL", BYTES("\xc0\x80"), false, 0},
        {"a lone continuation", BYTES("\x80"), false, 0},
        {"four continuations", BYTES("\x80\x80\x80\x80"), false, 0},
        {"a five byte form", BYTES("\xf8\x88\x80\x80\x80"), false, 0},
        {"f5", BYTES("\xf5\x80\x80\x80"), false, 0},
        {"fe and ff", BYTES("\xfe\xff"), false, 0},
        {"latin-1", BYTES("caf\xe9 "), false, 0},
        {"a second byte that is none", BYTES("\xc3("), false, 0},
        {"a third byte that is none", BYTES("\xe2\x82("), false, 0},
        {"cut: one of two", BYTES("ab\xc3"), false, 1},
        {"cut: one of three", BYTES("ab\xe2"), false, 1},
        {"cut: two of three", BYTES("ab\xe2\x82"), false, 2},
        {"cut: one of four", BYTES("\xf0"), false, 1},
        {"cut: two of four", BYTES("\xf0\x9f"), false, 2},
        {"cut: three of four", BYTES("x\xf0\x9f\x92"), false, 3},
        {"cut after a whole character", BYTES("\xe2\x82\xac\xe2"), false, 1},
        {"the whole three", BYTES("\xe2\x82\xac"), true, 0},
        {"the whole four", BYTES("\xf0\x9f\x92\xa9"), true, 0},
        {"bad in the middle, good at the end",
         BYTES("\xff"
               "abc"),
         false, 0},
};

static void test_utf8(void **state) {
        const struct utf8_row *row = *state;

        assert_int_equal(text_is_utf8(row->text, row->len), row->valid);
        assert_int_equal(text_cut_tail(row->text, row->len), row->cut);
        /* Without the begun character the rest of these texts is whole again. */
        if (row->cut)
                assert_true(text_is_utf8(row->text, row->len - row->cut));
}

/* Every scalar value is taken, and its every beginning is cut off. */
static void test_every_character(void **state _unused_) {
        for (uint32_t c = 0; c <= 0x10ffff; c++) {
                uint8_t out[4];
                size_t n;

                if (c < 0x80)
                        n = 1, out[0] = (uint8_t) c;
                else if (c < 0x800)
                        n = 2, out[0] = (uint8_t) (0xc0 | c >> 6);
                else if (c < 0x10000)
                        n = 3, out[0] = (uint8_t) (0xe0 | c >> 12);
                else
                        n = 4, out[0] = (uint8_t) (0xf0 | c >> 18);
                for (size_t i = 1; i < n; i++)
                        out[i] = (uint8_t) (0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
                unit_check(text_is_utf8(out, n) == (c < 0xd800 || c > 0xdfff), "U+%04X", c);
                if (c >= 0xd800 && c <= 0xdfff)
                        continue;
                for (size_t i = 1; i < n; i++)
                        unit_check(text_cut_tail(out, i) == i, "U+%04X cut to %zu", c, i);
                unit_check(text_cut_tail(out, n) == 0, "U+%04X whole", c);
        }
}

static const struct base64_row {
        const char *name, *data;
        size_t len;
        const char *want;
} base64_rows[] = {
        {"base64 of nothing", BYTES(""), ""},
        {"base64 of one", BYTES("f"), "Zg=="},
        {"base64 of two", BYTES("fo"), "Zm8="},
        {"base64 of three", BYTES("foo"), "Zm9v"},
        {"base64 of four", BYTES("foob"), "Zm9vYg=="},
        {"base64 of five", BYTES("fooba"), "Zm9vYmE="},
        {"base64 of six", BYTES("foobar"), "Zm9vYmFy"},
        {"base64 of zeroes", BYTES("\0\0\0\0"), "AAAAAA=="},
        {"base64 of the highest digits", BYTES("\xff\xff\xfe\xfb\xef\xbe"), "///+++++"},
};

static void test_base64(void **state) {
        const struct base64_row *row = *state;
        struct buf b = {0};
        _cleanup_(freep) char *got = NULL;

        text_put_base64(&b, row->data, row->len);
        got = buf_take_string(&b);
        unit_same("base64", got, row->want);
}

static const struct clean_row {
        const char *name, *text;
        size_t len;
        const char *put, *in_place; /* in_place NULL: holds a NUL, which a string cannot */
} clean_rows[] = {
        {"clean text stays", BYTES("a b~"), "a b~", "a b~"},
        {"characters of other tongues stay", BYTES("\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xa9"),
         "\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xa9", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xa9"},
        {"a no-break space stays", BYTES("\xc2\xa0"), "\xc2\xa0", "\xc2\xa0"},
        {"an escape sequence", BYTES("\x1b[31mred"), "\\x1b[31mred", "?[31mred"},
        {"OSC 52", BYTES("\x1b]52;c;aGk=\a"), "\\x1b]52;c;aGk=\\x07", "?]52;c;aGk=?"},
        {"line feed and return", BYTES("a\r\nb"), "a\\x0d\\x0ab", "a??b"},
        {"backspace and DEL", BYTES("\b\x7f"), "\\x08\\x7f", "??"},
        {"a NUL", BYTES("a\0b"), "a\\x00b", NULL},
        {"C1: CSI in UTF-8",
         BYTES("\xc2\x9b"
               "31m"),
         "\\xc2\\x9b31m", "??31m"},
        {"C1: the first and the last", BYTES("\xc2\x80\xc2\x9f"), "\\xc2\\x80\\xc2\\x9f", "????"},
        {"a raw C1 byte",
         BYTES("\x9b"
               "31m"),
         "\\x9b31m", "?31m"},
        {"broken bytes",
         BYTES("a\xff\xfe"
               "b"),
         "a\\xff\\xfeb", "a??b"},
        {"an overlong ESC", BYTES("\xc0\x9b"), "\\xc0\\x9b", "??"},
        {"a cut character at the end", BYTES("a\xe2\x82"), "a\\xe2\\x82", "a??"},
        {"broken, then good", BYTES("\xe2\x82\xc3\xa4"), "\\xe2\\x82\xc3\xa4", "??\xc3\xa4"},
};

static void test_clean(void **state) {
        const struct clean_row *row = *state;
        struct buf b = {0};
        _cleanup_(freep) char *got = NULL, *copy = NULL;

        text_put_clean(&b, row->text, row->len);
        got = buf_take_string(&b);
        unit_same("put", got, row->put);
        if (!row->in_place)
                return;
        copy = strndup(row->text, row->len);
        assert_non_null(copy);
        text_clean_in_place(copy);
        unit_same("in place", copy, row->in_place);
}

/* Whatever comes in, what goes out is UTF-8 without a control character. */
static void test_clean_random(void **state _unused_) {
        uint32_t seed = 7;

        for (int round = 0; round < 20000; round++) {
                uint8_t in[24];
                size_t n = unit_random(&seed) % (sizeof(in) + 1);
                _cleanup_(buf_done) struct buf b = {0};

                for (size_t i = 0; i < n; i++)
                        in[i] = (uint8_t) (unit_random(&seed) >> 7);
                text_put_clean(&b, in, n);
                assert_true(text_is_utf8(b.data, b.len));
                for (size_t i = 0; i < b.len; i++) {
                        assert_true(b.data[i] >= 0x20 && b.data[i] != 0x7f);
                        assert_false(b.data[i] == 0xc2 && b.data[i + 1] < 0xa0);
                }
        }
}

static const struct nearest_row {
        const char *name, *word, *want;
} nearest_rows[] = {
        {"the word itself", "memory", "memory"},
        {"one letter missing", "memry", "memory"},
        {"one letter too many", "timeoutt", "timeout"},
        {"one letter wrong", "mimory", "memory"},
        {"neighbours exchanged", "tiemout", "timeout"},
        {"exchanged in a short word", "or", "ro"},
        {"too far", "banana", NULL},
        {"nothing like it", "xyzzyplugh", NULL},
        {"the empty word", "", NULL},
        {"a word longer than any", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         NULL},
};

static void test_nearest(void **state) {
        static const char *const words[] = {"memory", "timeout", "ro", "workspace"};
        const struct nearest_row *row = *state;

        unit_same("nearest", text_nearest(row->word, words, ARRAY_SIZE(words)), row->want);
}

static void test_nearest_of_none(void **state _unused_) {
        assert_null(text_nearest("x", NULL, 0));
}

static const struct interpreter_row {
        const char *name, *text, *want;
} interpreter_rows[] = {
        {"a path", "#!/bin/sh\n", "sh"},
        {"options behind it", "#! /usr/bin/perl -w python\n", "perl"},
        {"env", "#!/usr/bin/env python3", "python3"},
        {"env with options and assignments", "#!/usr/bin/env -S A=b -i bash -e\nzsh", "bash"},
        {"carriage return", "#!/bin/bash\r\n", "bash"},
        {"no program", "#!/usr/bin/env -S\nsh", NULL},
        {"no such line", "echo #!/bin/sh", NULL},
        {"nothing", "", NULL},
        {"a name that is too long", "#!/bin/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
         NULL},
};

static void test_interpreter(void **state) {
        const struct interpreter_row *row = *state;
        char name[32];

        unit_same("interpreter", text_interpreter(row->text, strlen(row->text), name, sizeof(name)) ? name : NULL,
                  row->want);
}

int main(void) {
        unit_add_rows(utf8_rows, test_utf8);
        unit_add("every character", test_every_character, NULL);
        unit_add_rows(base64_rows, test_base64);
        unit_add_rows(clean_rows, test_clean);
        unit_add("cleaned random bytes are harmless", test_clean_random, NULL);
        unit_add_rows(nearest_rows, test_nearest);
        unit_add("nearest of no candidates", test_nearest_of_none, NULL);
        unit_add_rows(interpreter_rows, test_interpreter);
        return unit_run("base/text");
}
