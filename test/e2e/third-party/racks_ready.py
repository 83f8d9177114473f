"""Watches racks over plain gRPC until all of them are Ready, and prints what their histories say as one JSON object.

usage: racks_ready.py HOST:PORT TOKEN SECONDS
"""

import json
import sys
import time

import grpc

from forge_client import forge


def main(address, token, seconds):
    with grpc.insecure_channel(address) as channel:
        call = forge(channel, token)
        deadline = time.monotonic() + float(seconds)
        while True:
            racks = {rack.id.id: rack.rack_state for rack in call("GetRack").rack}
            if racks and all(state == "Ready" for state in racks.values()):
                break
            if time.monotonic() > deadline:
                raise SystemExit(f"after {seconds} s: {racks}")
            time.sleep(0.5)
        found = call("FindRackStateHistories", rack_ids=[{"id": id} for id in racks]).histories
        histories = {id: [json.loads(record.state)["state"] for record in found[id].records] for id in racks}
        print(json.dumps({"racks": racks, "histories": histories}))


main(*sys.argv[1:])
