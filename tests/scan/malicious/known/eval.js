const payload = process.argv[2];
eval(payload);
