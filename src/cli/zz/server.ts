import {connectNodeAdapter} from '@connectrpc/connect-node';
import http from 'node:http';
import { createFakeShelves } from "../fake-shelves.ts";
const f=createFakeShelves(); for (let i=0;i<3;i++) f.put({id:'ps-'+i,state:'ready',stateReason:'x'});
const s=http.createServer(connectNodeAdapter({routes:f.routes}));
s.listen(0,'127.0.0.1',()=>console.log((s.address() as any).port));
