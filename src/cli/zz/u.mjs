import http from 'node:http'; const t0=performance.now();
await new Promise(r=>http.get(process.argv[2]+'/',x=>{x.resume();x.on('end',r)})); console.log('http', (performance.now()-t0).toFixed(0)); process.exit(0)
