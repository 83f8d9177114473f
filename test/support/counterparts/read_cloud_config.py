"""Prints as JSON what cloud-init makes of a directory with a seed: who it is for, its users, its keys and its files.

Usage: read_cloud_config.py <directory> <default user of the distribution>
"""

import json
import sys

import yaml
from cloudinit import helpers, util
from cloudinit.distros import fetch, ug_util

directory, default_user = sys.argv[1:]
seed = util.pathprefix2dict(directory, required=["user-data", "meta-data"], optional=["vendor-data"])
config = yaml.safe_load(util.decode_binary(seed["user-data"]))
metadata = yaml.safe_load(util.decode_binary(seed["meta-data"]))
distribution = fetch("debian")("debian", {"default_user": {"name": default_user, "groups": ["adm"]}}, helpers.Paths({}))
users, _ = ug_util.normalize_users_groups(config, distribution)
print(
    json.dumps(
        {
            "instance": metadata["instance-id"],
            "users": users,
            "keys": config.get("ssh_authorized_keys", []),
            "files": [each["path"] for each in config.get("write_files", [])],
        }
    )
)
