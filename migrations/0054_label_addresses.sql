-- The label nvos_address of a switch became the fact nvosAddress, and the password of its operating system went there. Migration 0049 left the
-- fact. This server reads what the BMC reports as the fact reportedNvosAddress, and never the old one. A server of before, which still does, forgets what the label
-- said.
update switches set facts = facts - 'nvosAddress'
 where nvos_address is null and facts ->> 'nvosAddress' = labels ->> 'nvos_address';
