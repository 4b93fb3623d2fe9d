/* Tokens of Python and JavaScript (TypeScript included). */
#pragma once

#include "scan.h"

enum token_kind { TOKEN_NAME, TOKEN_STRING, TOKEN_NUMBER, TOKEN_OPERATOR, TOKEN_LINE };

struct piece {
        const char *src;
        size_t len;
        struct piece *next;
};

struct token {
        enum token_kind kind;
        bool dynamic; /* of a string: it holds expressions, \1 in its text */
        char op;      /* the first character of an operator */
        uint32_t off;
        uint32_t partner; /* of a bracket: the matching one; 0: none */
        const char *s;    /* a string's is decoded */
        size_t len;
        char quote;
        struct piece *pieces; /* of a dynamic string: its expressions, one for each \1 */
};

struct tokens {
        struct token *v;
        size_t n, room;
};

void code_tokens(struct scan *s, const struct unit *unit, struct tokens *ret);
