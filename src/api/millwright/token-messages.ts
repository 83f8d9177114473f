import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateTokenRequest, TokenSchema } from "../../../contract/millwright/v1/token_pb.js";
import type { CreateToken, ListedToken } from "../../services/system/tokens.ts";
import { dateFrom, timestampOf } from "../convert/fields.ts";

export const createTokenFrom = ({ name, roles, scope, expiresAt }: CreateTokenRequest): CreateToken => ({
  name,
  roles,
  ...(scope && { scope: { methods: scope.methods } }),
  expiresAt: dateFrom(expiresAt, "expires_at"),
});

export const tokenOf = (row: ListedToken): MessageInitShape<typeof TokenSchema> => ({
  id: row.id,
  name: row.name,
  roles: [...row.roles],
  createdAt: timestampOf(row.createdAt),
  expiresAt: timestampOf(row.expiresAt),
  revokedAt: timestampOf(row.revokedAt),
  lastUsedAt: timestampOf(row.lastUsedAt),
  validUntil: timestampOf(row.validUntil),
  ...(row.scope && { scope: { methods: [...row.scope.methods] } }),
});
