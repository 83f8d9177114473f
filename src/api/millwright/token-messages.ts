import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateTokenRequest,
  TokenSchema,
  TokenScope,
  TokenScopeSchema,
} from "../../../contract/millwright/v1/token_pb.js";
import type { Scope } from "../../kernel/access/scope.ts";
import type { CreateToken, ListedToken } from "../../services/system/tokens.ts";
import { dateFrom, timestampOf } from "../convert/fields.ts";

export const createTokenFrom = ({ name, roles, scope, expiresAt }: CreateTokenRequest): CreateToken => ({
  name,
  roles,
  ...(scope && { scope: scopeFrom(scope) }),
  expiresAt: dateFrom(expiresAt, "expires_at"),
});

const scopeFrom = ({ methods, racks, clusters, customers, labels }: TokenScope): Scope => ({
  ...{ methods, racks, clusters, customers, labels },
});

export const scopeMessage = (scope: Scope): MessageInitShape<typeof TokenScopeSchema> => ({
  methods: [...scope.methods],
  racks: [...scope.racks],
  clusters: [...scope.clusters],
  customers: [...scope.customers],
  labels: [...scope.labels],
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
