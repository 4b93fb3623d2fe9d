process.getBuiltinModule('child_process').exec(x)
