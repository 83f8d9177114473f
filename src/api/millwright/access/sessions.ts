import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ConsoleSessionSchema, SessionService } from "../../../../contract/millwright/v1/session_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { pageSessions, revokeSession, type SessionRow } from "../../../services/system/sessions.ts";
import { timestampOf } from "../../convert/fields.ts";
import { listRequestFrom, pageOf } from "../../convert/listing.ts";
import { callerKey } from "../../transport/interceptors.ts";

/** `onRevoked` is called once the revocation is committed, so that what remembers sessions forgets this one. */
export const sessions = (deps: ServiceDeps, onRevoked: (id: string) => void): ServiceImpl<typeof SessionService> => ({
  async listSessions(request) {
    const page = await pageSessions(deps, listRequestFrom(request, null));
    return { sessions: page.items.map(sessionOf), ...pageOf(page) };
  },
  async revokeSession({ id }, { values }) {
    await revokeSession(deps, values.get(callerKey), id);
    onRevoked(id);
    return {};
  },
});

const sessionOf = (row: SessionRow): MessageInitShape<typeof ConsoleSessionSchema> => ({
  id: row.id,
  name: row.name,
  roles: [...row.roles],
  credential: row.credentialKind,
  createdAt: timestampOf(row.createdAt),
  expiresAt: timestampOf(row.expiresAt),
  endedAt: timestampOf(row.endedAt),
  address: row.address ?? "",
  userAgent: row.userAgent,
});
