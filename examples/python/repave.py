#!/usr/bin/env python3
"""Repaves a machine over plain gRPC and prints its log as it comes.

    examples/python/repave.py MACHINE_ID [REQUEST_ID]

Needs grpcio and protobuf alone: the schema comes from the server's reflection. (With grpcio-tools, generate stubs from
proto/baremetal/v1/baremetal.proto instead.) MILLWRIGHT_GRPC is where the server is (127.0.0.1:50051), MILLWRIGHT_TOKEN a token
with the role `operator`. The exit code is the result: 0 when the run SUCCEEDED, 1 when it did not, 2 when it could not be started.
"""

import os
import sys
import uuid

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as missing:
    print(f"not started: {missing}; install it: python3 -m pip install grpcio protobuf", file=sys.stderr)
    sys.exit(2)

SERVICE = "baremetal.v1.RunService"
STRING, BYTES, MESSAGE, OPTIONAL, REPEATED = 9, 12, 11, 1, 3


def message_class(pool, name):
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def fetch_schema(channel, symbol):
    """All files that the service is made of, asked of the server itself."""
    own = descriptor_pb2.FileDescriptorProto(name="asked.proto", package="asked", syntax="proto3")
    request = own.message_type.add(name="Request")
    request.field.add(name="file_by_filename", number=3, type=STRING, label=OPTIONAL)
    request.field.add(name="file_containing_symbol", number=4, type=STRING, label=OPTIONAL)
    files = own.message_type.add(name="Files")
    files.field.add(name="file_descriptor_proto", number=1, type=BYTES, label=REPEATED)
    response = own.message_type.add(name="Response")
    response.field.add(name="files", number=4, type=MESSAGE, label=OPTIONAL, type_name=".asked.Files")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(own)
    request_class, response_class = message_class(pool, "asked.Request"), message_class(pool, "asked.Response")
    ask = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=response_class.FromString,
    )

    def files_of(**asked):
        (answer,) = ask(iter([request_class(**asked)]), timeout=10)
        return [descriptor_pb2.FileDescriptorProto.FromString(data) for data in answer.files.file_descriptor_proto]

    known = {file.name: file for file in files_of(file_containing_symbol=symbol)}
    while missing := {name for file in known.values() for name in file.dependency} - known.keys():
        for name in missing:
            known.update({file.name: file for file in files_of(file_by_filename=name)})
    schema = descriptor_pool.DescriptorPool()
    left = dict(known)
    while left:
        ready = [file for file in left.values() if not any(name in left for name in file.dependency)]
        for file in ready:
            schema.Add(file)
            del left[file.name]
    return schema


def main(machine_id, request_id=None):
    address = os.environ.get("MILLWRIGHT_GRPC", "127.0.0.1:50051")
    metadata = (("authorization", f"Bearer {os.environ.get('MILLWRIGHT_TOKEN', '')}"),)
    with grpc.insecure_channel(address) as channel:
        schema = fetch_schema(channel, SERVICE)
        methods = schema.FindServiceByName(SERVICE).methods_by_name

        def call(name, streams=False, **fields):
            method = methods[name]
            rpc = (channel.unary_stream if streams else channel.unary_unary)(
                f"/{SERVICE}/{name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=message_class(schema, method.output_type.full_name).FromString,
            )
            request = message_class(schema, method.input_type.full_name)(**fields)
            return rpc(request, metadata=metadata, timeout=None if streams else 10)

        try:
            run = call("StartRun", machine_id=machine_id, request_id=request_id or str(uuid.uuid4()), type="REPAVE")
        except grpc.RpcError as error:
            print(f"not started: {error.code().name}: {error.details()}", file=sys.stderr)
            return 2
        print(f"run {run.run_id}", file=sys.stderr)
        for chunk in call("StreamRunLogs", streams=True, run_id=run.run_id):
            out = sys.stderr if chunk.stream == "stderr" else sys.stdout
            out.buffer.write(chunk.data)
            out.flush()
        run = call("GetRun", run_id=run.run_id)
        phase = run.DESCRIPTOR.fields_by_name["phase"].enum_type.values_by_number[run.phase].name
        print(f"{phase} {run.error.message}".strip(), file=sys.stderr)
        return 0 if phase == "SUCCEEDED" else 1


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    sys.exit(main(*sys.argv[1:]))
