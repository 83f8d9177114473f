import { createRequire } from "node:module";
const require=createRequire(import.meta.url);
const t=(l:string)=>console.log(l, performance.now().toFixed(0));
t('start');
require('@bufbuild/protobuf'); t('protobuf cjs');
require('@bufbuild/protobuf/codegenv2'); t('codegen cjs');
require('@bufbuild/protobuf/wkt'); t('wkt cjs');
require('@connectrpc/connect'); t('connect cjs');
require('@connectrpc/connect/protocol-connect'); t('pc cjs');
process.exit(0)
