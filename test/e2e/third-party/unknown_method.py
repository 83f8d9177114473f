"""Calls a method that no server has, and prints what grpcio makes of the answer as one JSON object.

usage: unknown_method.py HOST:PORT
"""

import json
import sys

import grpc

with grpc.insecure_channel(sys.argv[1]) as channel:
    call = channel.unary_unary("/forge.Forge/SelfDestruct")
    try:
        call(b"", timeout=10)
        raise SystemExit("the call succeeded")
    except grpc.RpcError as refused:
        print(json.dumps({"code": refused.code().name, "details": refused.details()}))
