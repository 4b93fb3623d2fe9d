eval(String.fromCharCode(114,101,113,117,105,114,101));
