"""Drives a machine's BMC with OpenStack's Redfish client: power, boot override, virtual media, LED, parts. Prints what it saw as JSON.

usage: drive_machine.py <base url> <username> <password> <image url>
"""
import json
import sys
import time

import sushy
import urllib3

urllib3.disable_warnings()
base, username, password, image = sys.argv[1:]
root = sushy.Sushy(base, username=username, password=password, verify=False)
system = root.get_system_collection().get_members()[0]
seen = {"uuid": system.uuid, "power": [system.power_state.value]}


def until_power(state):
    deadline = time.monotonic() + 30
    while system.power_state != state:
        if time.monotonic() > deadline:
            raise SystemExit(f"still {system.power_state}, not {state}")
        time.sleep(0.05)
        system.refresh(force=True)
    seen["power"].append(system.power_state.value)


system.set_system_boot_options(target=sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE)
system.refresh(force=True)
boot = system.boot
seen["boot"] = {"target": boot.target.value, "enabled": boot.enabled.value}
# Taken back before the power goes, or the machine would boot from it.
system.set_system_boot_options(enabled=sushy.BootSourceOverrideEnabled.DISABLED)

system.set_indicator_led(sushy.IndicatorLED.LIT)
system.refresh(force=True)
seen["led"] = system.indicator_led.value
system.set_indicator_led(sushy.IndicatorLED.OFF)

update, events = root.get_update_service(), root.get_event_service()
seen["services"] = [update.identity, events.identity]
seen["firmware"] = [item.version for item in update.firmware_inventory.get_members()]
seen["parts"] = {
    "processors": [processor.identity for processor in system.processors.get_members()],
    "drives": [drive.identity for storage in system.storage.get_members() for drive in storage.drives],
    "bios": system.bios.attributes["BootMode"],
    "secure_boot": system.secure_boot.enabled,
}

media = [
    medium
    for manager in root.get_manager_collection().get_members()
    for medium in manager.virtual_media.get_members()
    if sushy.VirtualMediaType.CD in medium.media_types
]
drive = media[0]
drive.insert_media(image, inserted=True, write_protected=True)
drive.refresh(force=True)
seen["inserted"] = {"image": drive.image, "inserted": drive.inserted}
drive.eject_media()
drive.refresh(force=True)
seen["ejected"] = {"image": drive.image, "inserted": drive.inserted}

system.reset_system(sushy.ResetType.FORCE_OFF)
until_power(sushy.PowerState.OFF)
system.reset_system(sushy.ResetType.ON)
until_power(sushy.PowerState.ON)
print(json.dumps(seen))
