"""Replaces the firmware of a component with OpenStack's Redfish client. Prints the version before and after, and the states of the task, as JSON.

usage: update_firmware.py <base url> <username> <password> <image url> <component>
"""
import json
import sys
import time

import sushy
import urllib3

urllib3.disable_warnings()
base, username, password, image, component = sys.argv[1:]


def version():
    root = sushy.Sushy(base, username=username, password=password, verify=False)
    inventory = root.get_update_service().firmware_inventory
    return next(item.version for item in inventory.get_members() if item.identity == component)


before = version()
service = sushy.Sushy(base, username=username, password=password, verify=False).get_update_service()
targets = [f"/redfish/v1/UpdateService/FirmwareInventory/{component}"]
task = service.simple_update(image, targets=targets, transfer_protocol="HTTP").get_task()
states = [task.task_state.value]
deadline = time.monotonic() + 60
while task.task_state == sushy.TASK_STATE_RUNNING:
    if time.monotonic() > deadline:
        raise SystemExit(f"still {task.task_state} at {task.percent_complete} %")
    time.sleep(0.1)
    task.refresh(force=True)
states.append(task.task_state.value)
print(json.dumps({"before": before, "states": states, "after": version()}))
