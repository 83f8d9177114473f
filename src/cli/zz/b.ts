import '@bufbuild/protobuf'; import '@bufbuild/protobuf/codegenv2'; import '@bufbuild/protobuf/wkt'; import '@connectrpc/connect'; import '@connectrpc/connect/protocol-connect';
import "../../../contract/millwright/v1/power_shelf_pb.js"; import "commander";
console.log('all static', performance.now().toFixed(0)); process.exit(0)
