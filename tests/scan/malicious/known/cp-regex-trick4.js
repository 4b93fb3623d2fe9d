{}
/'/.test(1); require('child_process').exec(x) //'
