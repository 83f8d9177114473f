const t=(l:string)=>console.log(l, performance.now().toFixed(0));
t('start');
await import('commander'); t('commander');
await import('../program.ts'); t('program');
await import('@bufbuild/protobuf'); t('protobuf');
await import('../../../contract/millwright/v1/power_shelf_pb.js'); t('contract');
await import('@connectrpc/connect'); t('connect');
await import('@connectrpc/connect-web'); t('connect-web');
await import('../commands/power-shelf-list.ts'); t('list');
await (await fetch(process.argv[2]+'/')).text(); t('fetch');
process.exit(0)
