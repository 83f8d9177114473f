-- Which live node is bound to a machine of MAAS: asked before another one is bound to it.
create index fleet_nodes_by_system on fleet_nodes (site, (facts ->> 'systemId')) where state <> 'deleted';
