import type { ServiceImpl } from "@connectrpc/connect";
import type { TokenService } from "../../../contract/millwright/v1/token_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createToken, pageTokens, revokeToken } from "../../services/system/tokens.ts";
import { timestampOf } from "../convert/fields.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";
import { callerKey } from "../transport/interceptors.ts";
import { createTokenFrom, tokenOf } from "./token-messages.ts";

/** `onRevoked` is called once the revocation is committed, so that what remembers tokens forgets this one. */
export const tokens = (deps: ServiceDeps, onRevoked: (id: string) => void): ServiceImpl<typeof TokenService> => ({
  async createToken(request, { values }) {
    const { validUntil, ...made } = await createToken(deps, values.get(callerKey), createTokenFrom(request));
    return { ...made, validUntil: timestampOf(validUntil) };
  },
  async listTokens(request) {
    const page = await pageTokens(deps, listRequestFrom(request, null));
    return { tokens: page.items.map(tokenOf), ...pageOf(page) };
  },
  async revokeToken({ id }, { values }) {
    await revokeToken(deps, values.get(callerKey), id);
    onRevoked(id);
    return {};
  },
});
