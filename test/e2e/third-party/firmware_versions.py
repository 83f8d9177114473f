"""Reads the firmware inventory of a BMC with OpenStack's Redfish client. Prints the versions by component as JSON.

usage: firmware_versions.py <base url> <username> <password>
"""
import json
import sys

import sushy
import urllib3

urllib3.disable_warnings()
base, username, password = sys.argv[1:]
root = sushy.Sushy(base, username=username, password=password, verify=False)
inventory = root.get_update_service().firmware_inventory
print(json.dumps({item.identity: item.version for item in inventory.get_members()}))
