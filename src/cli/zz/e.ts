const t=(l:string)=>console.log(l, performance.now().toFixed(0));
t('start');
await import('@bufbuild/protobuf'); t('protobuf');
await import('@bufbuild/protobuf/codegenv2'); t('codegen');
await import('@bufbuild/protobuf/wkt'); t('wkt');
await import('@connectrpc/connect'); t('connect');
await import('@connectrpc/connect/protocol-connect'); t('pc');
process.exit(0)
