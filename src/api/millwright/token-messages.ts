import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateTokenRequest, TokenSchema, TokenScopeSchema } from "../../../contract/millwright/v1/token_pb.js";
import type { Scope } from "../../kernel/access/scope.ts";
import type { CreateToken, ListedToken } from "../../services/system/tokens.ts";
import { dateFrom, timestampOf } from "../convert/fields.ts";

export const createTokenFrom = ({ name, roles, scope, expiresAt }: CreateTokenRequest): CreateToken => ({
  name,
  roles,
  ...(scope && { scope: { methods: scope.methods } }),
  expiresAt: dateFrom(expiresAt, "expires_at"),
});

export const scopeMessage = (scope: Scope): MessageInitShape<typeof TokenScopeSchema> => ({
  methods: [...scope.methods],
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
  ...(row.scope && { scope: scopeMessage(row.scope) }),
});
