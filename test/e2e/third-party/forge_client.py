"""Calls of forge.Forge with nothing but grpcio and protobuf: the schema comes from the server's reflection alone."""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

STRING, BYTES, MESSAGE = 9, 12, 11
OPTIONAL, REPEATED = 1, 3


def message_class(pool, name):
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def reflection_pool():
    """The few messages of the reflection protocol that we need; everything else is asked of the server."""
    file = descriptor_pb2.FileDescriptorProto(name="asked.proto", package="asked", syntax="proto3")
    request = file.message_type.add(name="Request")
    request.field.add(name="file_by_filename", number=3, type=STRING, label=OPTIONAL)
    request.field.add(name="file_containing_symbol", number=4, type=STRING, label=OPTIONAL)
    files = file.message_type.add(name="Files")
    files.field.add(name="file_descriptor_proto", number=1, type=BYTES, label=REPEATED)
    response = file.message_type.add(name="Response")
    response.field.add(
        name="file_descriptor_response", number=4, type=MESSAGE, label=OPTIONAL, type_name=".asked.Files"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def fetch_schema(channel, symbol):
    asked = reflection_pool()
    request_class = message_class(asked, "asked.Request")
    response_class = message_class(asked, "asked.Response")
    ask = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=response_class.FromString,
    )

    def files_of(request):
        (response,) = ask(iter([request]), timeout=10)
        if not response.file_descriptor_response.file_descriptor_proto:
            raise SystemExit(f"the server's reflection does not know {request}")
        return [
            descriptor_pb2.FileDescriptorProto.FromString(data)
            for data in response.file_descriptor_response.file_descriptor_proto
        ]

    known = {file.name: file for file in files_of(request_class(file_containing_symbol=symbol))}
    while missing := {name for file in known.values() for name in file.dependency} - known.keys():
        for name in missing:
            known.update({file.name: file for file in files_of(request_class(file_by_filename=name))})

    pool = descriptor_pool.DescriptorPool()
    added = set()

    def add(file):
        if file.name in added:
            return
        added.add(file.name)
        for name in file.dependency:
            add(known[name])
        pool.Add(file)

    for file in known.values():
        add(file)
    return pool


def forge(channel, token):
    """A function that calls a method by its name, with the fields of its request."""
    pool = fetch_schema(channel, "forge.Forge")
    service = pool.FindServiceByName("forge.Forge")

    def call(name, **fields):
        method = service.methods_by_name[name]
        request = message_class(pool, method.input_type.full_name)(**fields)
        rpc = channel.unary_unary(
            f"/forge.Forge/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class(pool, method.output_type.full_name).FromString,
        )
        return rpc(request, timeout=10, metadata=(("authorization", f"Bearer {token}"),))

    return call
