const a=<div>don't</div>; require('child_process').exec(x)
