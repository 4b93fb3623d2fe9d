/* See sanitizer.h. */
#include "sanitizer.h"

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer calls this before a function that does not return, and prints a warning where the stack is not the one
 * that the process began with, as in init. */
void __asan_handle_no_return(void) {
}
#endif
