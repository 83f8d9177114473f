import type { ServiceImpl } from "@connectrpc/connect";
import type { SecretKeyService } from "../../../../contract/millwright/v1/secret_key_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { listSecretKeys, rotateSecretKey, type ShownKey } from "../../../services/system/secret-keys.ts";
import { timestampOf } from "../../convert/fields.ts";
import { callerKey } from "../../transport/interceptors.ts";

const keyOf = ({ firstSeenAt, currentSince, removableAt, isCurrent, ...key }: ShownKey) => ({
  ...key,
  current: isCurrent,
  firstSeenAt: timestampOf(firstSeenAt),
  currentSince: timestampOf(currentSince),
  removableAt: timestampOf(removableAt),
});

export const secretKeys = (deps: ServiceDeps): ServiceImpl<typeof SecretKeyService> => ({
  async listSecretKeys() {
    const { keys, replicas } = await listSecretKeys(deps);
    return { keys: keys.map(keyOf), replicas };
  },
  async rotateSecretKey({ keyId }, { values }) {
    const { key, changed, secretsLeft } = await rotateSecretKey(deps, values.get(callerKey), keyId);
    return { key: keyOf(key), changed, secretsLeft };
  },
});
