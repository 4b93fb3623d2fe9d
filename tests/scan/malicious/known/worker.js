const {Worker}=require('worker_threads'); new Worker(x,{eval:true})
