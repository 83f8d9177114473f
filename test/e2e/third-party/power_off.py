"""Powers one shelf off over plain gRPC, with nothing but grpcio and protobuf: the schema comes from reflection alone.

usage: power_off.py HOST:PORT TOKEN
Prints one JSON object: how many shelves there are, and what became of the first one.
"""

import json
import sys
import time

import grpc

from forge_client import forge

POWER_OFF = 2


def main(address, token):
    with grpc.insecure_channel(address) as channel:
        call = forge(channel, token)
        shelves = call("FindPowerShelves").power_shelves
        shelf = shelves[0]
        call(
            "SetPowerShelfMaintenance",
            power_shelf_ids=[{"id": shelf.id.id}],
            operation=POWER_OFF,
            reference="https://tracker/MAINT-123",
        )

        def look():
            return call("FindPowerShelvesByIds", power_shelf_ids=[{"id": shelf.id.id}]).power_shelves[0]

        deadline = time.monotonic() + 30
        seen = look()
        while (json.loads(seen.controller_state)["state"], seen.status.power_state) != ("ready", "off"):
            if time.monotonic() > deadline:
                raise SystemExit(f"the shelf is still {seen.controller_state} and {seen.status.power_state}")
            time.sleep(0.1)
            seen = look()
        print(
            json.dumps(
                {
                    "shelves": len(shelves),
                    "id": shelf.id.id,
                    "before": shelf.status.power_state,
                    "after": seen.status.power_state,
                    "moved": seen.state_version != shelf.state_version,
                }
            )
        )


main(*sys.argv[1:])
