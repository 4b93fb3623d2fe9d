(()=>{}).constructor(x)()
