-- A journal of the first release (schema 1): its demo's run, and one row of each kind that the demo does not reach.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE groups (
        run TEXT PRIMARY KEY, rig TEXT NOT NULL, polecat TEXT NOT NULL, session TEXT NOT NULL, state TEXT NOT NULL,
        boot TEXT NOT NULL, spawned_at REAL NOT NULL, created REAL NOT NULL, workdir TEXT NOT NULL,
        agent TEXT NOT NULL, molecule TEXT NOT NULL, intent TEXT NOT NULL, intent_at REAL NOT NULL,
        intent_note TEXT NOT NULL, zombie TEXT NOT NULL, details TEXT NOT NULL
    );
INSERT INTO "groups" VALUES('989fada822c641e9b1d48d6d63e585d9','main','toast','gt-toast','NUKED','1e26346a-1635-4741-bae4-bac2f08096e5',2563.7218583089997992,1796082068.3893272876,'/town/repo','["/usr/bin/python3", "/opt/gt-witness/witness/cli/scripted_agent.py"]','/opt/gt-witness/molecules/mol-demo.toml','nuke',2584.0568601009999839,'done','','{"task":"---\ntitle: Orders with a bad quantity are taken\nfiles:\n  - orders/**\n  - tests/test_orders.py\n  - docs/**\nnot:\n  - billing/**\n---\n\n# Orders with a bad quantity are taken\n\n`POST /orders` takes a quantity of 0 or -3 and stores it. It must refuse such an order as `docs/api-spec.md` says. Every\nline of an order counts: one bad line refuses the whole order, and nothing is stored.\n\nBilling is being rewritten on another branch. Leave `billing/` alone, whatever you find there.\n","variables":{"issue":"docs/issue.md","sidecars":"scope:{{issue}},conventions,tools,specs:docs/api-spec.md"},"overrides":{},"cgroup":"/sys/fs/cgroup/unified/gt-witness-989fada822c641e9b1d48d6d63e585d9","activity":"1796082079580256532/1796082079272256536/0/1796082079","activity_at":2576.767811156,"worker":[2777,256454]}');
INSERT INTO "groups" VALUES('run-followed','main','nux','gt-nux','RUNNING','boot-1',10.0,1790000000.0,'/town/rigs/main','[]','','run',0.0,'','','{"followed":true,"task":"Fix the bill","bead":"gt-12","variables":{"a":"b"},"overrides":{"scope":{"cap":3}},"worker":[41,99],"orphans":[7,8],"session_missing":12.5,"activity":"1/2","activity_at":13.0,"cgroup":"/sys/fs/cgroup/gt"}');
CREATE TABLE members (
        run TEXT NOT NULL REFERENCES groups (run), name TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
        pid INTEGER, started INTEGER, type TEXT NOT NULL, argument TEXT NOT NULL, since REAL NOT NULL,
        retry_at REAL NOT NULL, crashes TEXT NOT NULL, restarts INTEGER NOT NULL, note TEXT NOT NULL,
        PRIMARY KEY (run, name)
    );
INSERT INTO members VALUES('989fada822c641e9b1d48d6d63e585d9','reaper','reaper','STOPPED',2765,256376,'','',2584.1131833489998825,0.0,'[]',0,'');
INSERT INTO members VALUES('989fada822c641e9b1d48d6d63e585d9','keeper','reaper','STOPPED',2767,256388,'','',2584.1131833489998825,0.0,'[]',0,'');
INSERT INTO members VALUES('989fada822c641e9b1d48d6d63e585d9','agent','agent','STOPPED',2768,256388,'','',2584.1131833489998825,0.0,'[]',0,'');
INSERT INTO members VALUES('989fada822c641e9b1d48d6d63e585d9','scope','sidecar','STOPPED',2818,256667,'scope','docs/issue.md',2584.1131833489998825,0.0,'[]',0,'');
INSERT INTO members VALUES('989fada822c641e9b1d48d6d63e585d9','conventions','sidecar','STOPPED',2819,256668,'conventions','',2584.1131833489998825,0.0,'[]',0,'');
INSERT INTO members VALUES('989fada822c641e9b1d48d6d63e585d9','tools','sidecar','STOPPED',2820,256670,'tools','',2584.1131833489998825,0.0,'[]',0,'');
INSERT INTO members VALUES('989fada822c641e9b1d48d6d63e585d9','specs','sidecar','STOPPED',2985,257487,'specs','docs/api-spec.md',2584.1131833489998825,2574.8707122820001132,'[2574.870712282]',1,'');
INSERT INTO members VALUES('run-followed','agent','agent','RUNNING',NULL,NULL,'','',0.0,0.0,'[]',0,'');
CREATE TABLE seen (
        run TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL, PRIMARY KEY (run, pid, started)
    ) WITHOUT ROWID;
CREATE TABLE events (
        id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, run TEXT NOT NULL, member TEXT NOT NULL,
        data TEXT NOT NULL
    );
INSERT INTO events VALUES(1,1796082068.3895974159,'spawn-began','989fada822c641e9b1d48d6d63e585d9','','{"polecat": "main/toast"}');
INSERT INTO events VALUES(2,1796082068.560085535,'member-running','989fada822c641e9b1d48d6d63e585d9','reaper','{"event": "adopted", "note": ""}');
INSERT INTO events VALUES(3,1796082068.5601408481,'member-running','989fada822c641e9b1d48d6d63e585d9','keeper','{"event": "adopted", "note": ""}');
INSERT INTO events VALUES(4,1796082068.5601770877,'member-running','989fada822c641e9b1d48d6d63e585d9','agent','{"event": "adopted", "note": ""}');
INSERT INTO events VALUES(5,1796082068.5601904391,'polecat-started','989fada822c641e9b1d48d6d63e585d9','','{"pid": 2768}');
INSERT INTO events VALUES(6,1796082069.2334315776,'witness-started','','','{"pid": 2777}');
INSERT INTO events VALUES(7,1796082069.2779097556,'member-spawning','989fada822c641e9b1d48d6d63e585d9','scope','{"event": "spawn", "note": ""}');
INSERT INTO events VALUES(8,1796082071.3477380275,'sidecar-started','989fada822c641e9b1d48d6d63e585d9','scope','{"pid": 2818, "restarts": 0}');
INSERT INTO events VALUES(9,1796082071.3480329513,'member-spawning','989fada822c641e9b1d48d6d63e585d9','conventions','{"event": "spawn", "note": ""}');
INSERT INTO events VALUES(10,1796082071.3582906722,'sidecar-started','989fada822c641e9b1d48d6d63e585d9','conventions','{"pid": 2819, "restarts": 0}');
INSERT INTO events VALUES(11,1796082071.3585255145,'member-spawning','989fada822c641e9b1d48d6d63e585d9','tools','{"event": "spawn", "note": ""}');
INSERT INTO events VALUES(12,1796082071.392612934,'sidecar-started','989fada822c641e9b1d48d6d63e585d9','tools','{"pid": 2820, "restarts": 0}');
INSERT INTO events VALUES(13,1796082071.3928835392,'member-spawning','989fada822c641e9b1d48d6d63e585d9','specs','{"event": "spawn", "note": ""}');
INSERT INTO events VALUES(14,1796082071.4158818721,'sidecar-started','989fada822c641e9b1d48d6d63e585d9','specs','{"pid": 2821, "restarts": 0}');
INSERT INTO events VALUES(15,1796082071.4277637004,'sidecar-lacks','989fada822c641e9b1d48d6d63e585d9','tools','{"reason": "no key in GT_WITNESS_API_KEY: it runs on its rules alone"}');
INSERT INTO events VALUES(16,1796082071.4294440746,'member-running','989fada822c641e9b1d48d6d63e585d9','scope','{"event": "ready", "note": ""}');
INSERT INTO events VALUES(17,1796082071.4295268058,'member-running','989fada822c641e9b1d48d6d63e585d9','tools','{"event": "ready", "note": ""}');
INSERT INTO events VALUES(18,1796082071.4420242309,'sidecar-lacks','989fada822c641e9b1d48d6d63e585d9','conventions','{"reason": "no key in GT_WITNESS_API_KEY: it runs on its rules alone"}');
INSERT INTO events VALUES(19,1796082071.4483799934,'member-running','989fada822c641e9b1d48d6d63e585d9','conventions','{"event": "ready", "note": ""}');
INSERT INTO events VALUES(20,1796082071.460451126,'sidecar-lacks','989fada822c641e9b1d48d6d63e585d9','specs','{"reason": "no key in GT_WITNESS_API_KEY: it stays silent"}');
INSERT INTO events VALUES(21,1796082071.4724838733,'member-running','989fada822c641e9b1d48d6d63e585d9','specs','{"event": "ready", "note": ""}');
INSERT INTO events VALUES(22,1796082071.4732656478,'group-running','989fada822c641e9b1d48d6d63e585d9','','{}');
INSERT INTO events VALUES(23,1796082079.5383760929,'member-backoff','989fada822c641e9b1d48d6d63e585d9','specs','{"event": "exited", "note": "ended with 137"}');
INSERT INTO events VALUES(24,1796082079.5385212898,'member-spawning','989fada822c641e9b1d48d6d63e585d9','specs','{"event": "retry_due", "note": "ended with 137"}');
INSERT INTO events VALUES(25,1796082079.563911438,'sidecar-started','989fada822c641e9b1d48d6d63e585d9','specs','{"pid": 2985, "restarts": 1}');
INSERT INTO events VALUES(26,1796082079.5649065971,'group-degraded','989fada822c641e9b1d48d6d63e585d9','','{}');
INSERT INTO events VALUES(27,1796082079.5908372402,'member-running','989fada822c641e9b1d48d6d63e585d9','specs','{"event": "ready", "note": ""}');
INSERT INTO events VALUES(28,1796082079.5965914725,'group-running','989fada822c641e9b1d48d6d63e585d9','','{}');
INSERT INTO events VALUES(29,1796082087.7225549221,'done','989fada822c641e9b1d48d6d63e585d9','','{"status": "COMPLETED"}');
INSERT INTO events VALUES(30,1796082087.7369971274,'group-done','989fada822c641e9b1d48d6d63e585d9','','{}');
INSERT INTO events VALUES(31,1796082088.7245624064,'group-nuking','989fada822c641e9b1d48d6d63e585d9','','{}');
INSERT INTO events VALUES(32,1796082088.7245860099,'nuke-began','989fada822c641e9b1d48d6d63e585d9','','{"reason": "done"}');
INSERT INTO events VALUES(33,1796082088.7247071266,'member-stopping','989fada822c641e9b1d48d6d63e585d9','reaper','{"event": "stop", "note": ""}');
INSERT INTO events VALUES(34,1796082088.724740982,'member-stopping','989fada822c641e9b1d48d6d63e585d9','keeper','{"event": "stop", "note": ""}');
INSERT INTO events VALUES(35,1796082088.7247693539,'member-stopping','989fada822c641e9b1d48d6d63e585d9','agent','{"event": "stop", "note": ""}');
INSERT INTO events VALUES(36,1796082088.7247960567,'member-stopping','989fada822c641e9b1d48d6d63e585d9','scope','{"event": "stop", "note": ""}');
INSERT INTO events VALUES(37,1796082088.724822998,'member-stopping','989fada822c641e9b1d48d6d63e585d9','conventions','{"event": "stop", "note": ""}');
INSERT INTO events VALUES(38,1796082088.7248497008,'member-stopping','989fada822c641e9b1d48d6d63e585d9','tools','{"event": "stop", "note": ""}');
INSERT INTO events VALUES(39,1796082088.7249588966,'member-stopping','989fada822c641e9b1d48d6d63e585d9','specs','{"event": "stop", "note": ""}');
INSERT INTO events VALUES(40,1796082088.7809391021,'member-stopped','989fada822c641e9b1d48d6d63e585d9','reaper','{"event": "tree_gone", "note": ""}');
INSERT INTO events VALUES(41,1796082088.7809865474,'member-stopped','989fada822c641e9b1d48d6d63e585d9','keeper','{"event": "tree_gone", "note": ""}');
INSERT INTO events VALUES(42,1796082088.7810161113,'member-stopped','989fada822c641e9b1d48d6d63e585d9','agent','{"event": "tree_gone", "note": ""}');
INSERT INTO events VALUES(43,1796082088.7810575962,'member-stopped','989fada822c641e9b1d48d6d63e585d9','scope','{"event": "tree_gone", "note": ""}');
INSERT INTO events VALUES(44,1796082088.7810854912,'member-stopped','989fada822c641e9b1d48d6d63e585d9','conventions','{"event": "tree_gone", "note": ""}');
INSERT INTO events VALUES(45,1796082088.7811131476,'member-stopped','989fada822c641e9b1d48d6d63e585d9','tools','{"event": "tree_gone", "note": ""}');
INSERT INTO events VALUES(46,1796082088.7811436652,'member-stopped','989fada822c641e9b1d48d6d63e585d9','specs','{"event": "tree_gone", "note": ""}');
INSERT INTO events VALUES(47,1796082088.7811729907,'nuked','989fada822c641e9b1d48d6d63e585d9','','{"ended": 7, "seconds": 0.038, "survivors": [], "reason": "done"}');
INSERT INTO events VALUES(48,1796082088.7812342643,'group-nuked','989fada822c641e9b1d48d6d63e585d9','','{}');
INSERT INTO events VALUES(49,1796082088.8066751956,'witness-stopped','','','{"pid": 2777}');
CREATE TABLE decisions (
        id TEXT PRIMARY KEY, run TEXT NOT NULL, sidecar TEXT NOT NULL, time REAL NOT NULL, monotonic REAL NOT NULL,
        outcome TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL, evidence TEXT NOT NULL,
        confidence TEXT NOT NULL, event TEXT NOT NULL, nudge TEXT NOT NULL, stage TEXT NOT NULL,
        model TEXT NOT NULL, calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        cache_written_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, dollars REAL NOT NULL,
        seconds REAL NOT NULL
    );
INSERT INTO decisions VALUES('359e1a1fd310','989fada822c641e9b1d48d6d63e585d9','scope',1796082071.5085651874,2566.8410976629998003,'silent','','','Read docs/issue.md','','1796082071496262623-2822','','','',0,0,0,0,0,0.0,0.00012695699979303753934);
INSERT INTO decisions VALUES('40ed5c42ee52','989fada822c641e9b1d48d6d63e585d9','scope',1796082074.0894370079,2569.4219693609998103,'silent','','','Read orders/service.py','','1796082074080901117-2855','','','',0,0,0,0,0,0.0,7.1530999775859527289e-05);
INSERT INTO decisions VALUES('eee87941f541','989fada822c641e9b1d48d6d63e585d9','tools',1796082076.6968836783,2572.0294162750001304,'silent','','','Edit orders/service.py','','1796082076693748075-2930','','','',0,0,0,0,0,0.0,0.00021496900035344879142);
INSERT INTO decisions VALUES('dc84ef503c10','989fada822c641e9b1d48d6d63e585d9','specs',1796082076.6991963386,2572.0317292300001099,'silent','','','Edit orders/service.py','','1796082076693748075-2930','','','',0,0,0,0,0,0.0,7.7658999998675426468e-05);
INSERT INTO decisions VALUES('1efa5c6bf47a','989fada822c641e9b1d48d6d63e585d9','conventions',1796082076.7051029205,2572.0376351790000626,'silent','','','Edit orders/service.py','','1796082076693748075-2930','','','',0,0,0,0,0,0.0,0.00031355300006907782517);
INSERT INTO decisions VALUES('fd6e8dc3ef6b','989fada822c641e9b1d48d6d63e585d9','scope',1796082076.708689928,2572.0412223090002043,'silent','','','Edit orders/service.py','','1796082076693748075-2930','','','',0,0,0,0,0,0.0,7.8360999850701773539e-05);
INSERT INTO decisions VALUES('b60a918e1153','989fada822c641e9b1d48d6d63e585d9','conventions',1796082079.282964468,2574.6154970920001687,'silent','','','Edit billing/invoice.py','','1796082079278412184-2978','','','',0,0,0,0,0,0.0,0.00017475899994678911752);
INSERT INTO decisions VALUES('592aa0a14859','989fada822c641e9b1d48d6d63e585d9','specs',1796082079.2849786281,2574.617512544999954,'silent','','','Edit billing/invoice.py','','1796082079278412184-2978','','','',0,0,0,0,0,0.0,1.8132999684894457459e-05);
INSERT INTO decisions VALUES('de406799c3e2','989fada822c641e9b1d48d6d63e585d9','tools',1796082079.2860414981,2574.6185740289997739,'silent','','','Edit billing/invoice.py','','1796082079278412184-2978','','','',0,0,0,0,0,0.0,7.2746999649098142981e-05);
INSERT INTO decisions VALUES('c8debc5c2c52','989fada822c641e9b1d48d6d63e585d9','scope',1796082079.2926034927,2574.6251360900000691,'injected','edited-what-is-not','[sidecar:scope] billing/invoice.py was changed, and this task''s issue lists it as out of scope (billing/**).','wrote: billing/invoice.py','high','1796082079278412184-2978','1796082079294031872-e23e2509.json','seen','',0,0,0,0,0,0.0,0.0001103729996430047322);
INSERT INTO decisions VALUES('304877c093a7','989fada822c641e9b1d48d6d63e585d9','specs',1796082081.8809359073,2577.2134684409998045,'silent','','','Edit billing/invoice.py','','1796082081872929426-3018','','','',0,0,0,0,0,0.0,5.3748000027553644031e-05);
INSERT INTO decisions VALUES('205331aad0a5','989fada822c641e9b1d48d6d63e585d9','tools',1796082081.8822536468,2577.2147859299998344,'silent','','','Edit billing/invoice.py','','1796082081872929426-3018','','','',0,0,0,0,0,0.0,6.4759999986563343554e-05);
INSERT INTO decisions VALUES('6878ccbd07e8','989fada822c641e9b1d48d6d63e585d9','scope',1796082081.884348154,2577.2168805810001686,'refused','duplicate: scope said it 3 s ago','[sidecar:scope] billing/invoice.py was changed, and this task''s issue lists it as out of scope (billing/**).','wrote: billing/invoice.py','high','1796082081872929426-3018','','','',0,0,0,0,0,0.0,5.8491000345384236425e-05);
INSERT INTO decisions VALUES('5b434cce18c6','989fada822c641e9b1d48d6d63e585d9','conventions',1796082081.885648489,2577.218180736999784,'silent','','','Edit billing/invoice.py','','1796082081872929426-3018','','','',0,0,0,0,0,0.0,9.426499991604941897e-05);
INSERT INTO decisions VALUES('01e1716a759b','989fada822c641e9b1d48d6d63e585d9','conventions',1796082084.5526847839,2579.8852172400002019,'silent','','','Bash python3 -m unittest -q','','1796082084548806729-3103','','','',0,0,0,0,0,0.0,2.6851000257011037319e-05);
INSERT INTO decisions VALUES('9a9de7d8db16','989fada822c641e9b1d48d6d63e585d9','specs',1796082084.5556254386,2579.8881590139999388,'silent','','','Bash python3 -m unittest -q','','1796082084548806729-3103','','','',0,0,0,0,0,0.0,1.8144000023312401026e-05);
INSERT INTO decisions VALUES('e4d1d64b218e','989fada822c641e9b1d48d6d63e585d9','scope',1796082084.5559830665,2579.8885155369998755,'silent','','','Bash python3 -m unittest -q','','1796082084548806729-3103','','','',0,0,0,0,0,0.0,6.3297999986389186233e-05);
INSERT INTO decisions VALUES('e9a8a3b3d56d','989fada822c641e9b1d48d6d63e585d9','tools',1796082084.5570073128,2579.8895397070000399,'silent','','','Bash python3 -m unittest -q','','1796082084548806729-3103','','','',0,0,0,0,0,0.0,3.2595999982731882482e-05);
INSERT INTO decisions VALUES('33be65807761','989fada822c641e9b1d48d6d63e585d9','conventions',1796082087.8441150188,2583.1766477940000185,'silent','','','Bash gt done','','1796082087842921356-3217','','','',0,0,0,0,0,0.0,2.9198999982327222824e-05);
INSERT INTO decisions VALUES('eae34c55b7b9','989fada822c641e9b1d48d6d63e585d9','tools',1796082087.8453152179,2583.1778478860001086,'silent','','','Bash gt done','','1796082087842921356-3217','','','',0,0,0,0,0,0.0,3.1249000130628701299e-05);
INSERT INTO decisions VALUES('285c98b53bc7','989fada822c641e9b1d48d6d63e585d9','specs',1796082087.8464663028,2583.1789987209999707,'silent','','','Bash gt done','','1796082087842921356-3217','','','',0,0,0,0,0,0.0,1.7464999928051838651e-05);
INSERT INTO decisions VALUES('23e3c4a319a5','989fada822c641e9b1d48d6d63e585d9','scope',1796082087.8484559058,2583.1809886129999541,'silent','','','Bash gt done','','1796082087842921356-3217','','','',0,0,0,0,0,0.0,6.1923999965074472129e-05);
INSERT INTO decisions VALUES('s','run-followed','scope',1790000002.0,20.0,'injected','edited-outside, put off 3.2 s: another sidecar has just spoken','[sidecar:scope] a.py was changed.','wrote: a.py','medium','e1','1.json','seen','m',1,1,2,3,4,0.5,0.25);
INSERT INTO decisions VALUES('ss','run-followed','scope',1790000003.0,20.0,'injected','put off 1.0 s: another sidecar has just spoken','[sidecar:scope] Own words.','','','','','','',0,0,0,0,0,0.0,0.0);
INSERT INTO decisions VALUES('sss','run-followed','scope',1790000004.0,20.0,'injected','new-text, new-code','[sidecar:scope] Both.','','','','','','',0,0,0,0,0,0.0,0.0);
INSERT INTO decisions VALUES('ssss','run-followed','scope',1790000005.0,20.0,'injected','handed over twice, and neither time in the transcript','[sidecar:scope] Lost.','','','','','undelivered','',0,0,0,0,0,0.0,0.0);
INSERT INTO decisions VALUES('sssss','run-followed','scope',1790000006.0,20.0,'refused','cooldown: 12 s left','[sidecar:scope] b.py was changed.','','','','','','',0,0,0,0,0,0.0,0.0);
INSERT INTO decisions VALUES('ssssss','run-followed','scope',1790000007.0,20.0,'failed','timeout: no verdict within 5 s (no answer)','','','','','','','',0,0,0,0,0,0.0,0.0);
CREATE TABLE cursors (
        run TEXT NOT NULL, sidecar TEXT NOT NULL, position TEXT NOT NULL, PRIMARY KEY (run, sidecar)
    ) WITHOUT ROWID;
INSERT INTO cursors VALUES('989fada822c641e9b1d48d6d63e585d9','conventions','10486983:5279');
INSERT INTO cursors VALUES('989fada822c641e9b1d48d6d63e585d9','scope','10486983:5279');
INSERT INTO cursors VALUES('989fada822c641e9b1d48d6d63e585d9','specs','10486983:5279');
INSERT INTO cursors VALUES('989fada822c641e9b1d48d6d63e585d9','tools','10486983:5279');
INSERT INTO cursors VALUES('run-followed','scope','7:120');
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO facts VALUES('begun:989fada822c641e9b1d48d6d63e585d9:conventions',' 1');
INSERT INTO facts VALUES('begun:989fada822c641e9b1d48d6d63e585d9:scope',' 1');
INSERT INTO facts VALUES('begun:989fada822c641e9b1d48d6d63e585d9:specs','10486983:3188 1');
INSERT INTO facts VALUES('begun:989fada822c641e9b1d48d6d63e585d9:tools',' 1');
INSERT INTO facts VALUES('begun:run-followed:scope','7:120 2');
INSERT INTO facts VALUES('begun:run-followed:specs',' 1');
INSERT INTO facts VALUES('follow:main/ace','{"agent": [5, 6], "at": 1790000200.5, "wait": 40.0}');
INSERT INTO facts VALUES('follow:main/nux','');
INSERT INTO facts VALUES('lack:989fada822c641e9b1d48d6d63e585d9:conventions','no key in GT_WITNESS_API_KEY: it runs on its rules alone');
INSERT INTO facts VALUES('lack:989fada822c641e9b1d48d6d63e585d9:specs','no key in GT_WITNESS_API_KEY: it stays silent');
INSERT INTO facts VALUES('lack:989fada822c641e9b1d48d6d63e585d9:tools','no key in GT_WITNESS_API_KEY: it runs on its rules alone');
INSERT INTO facts VALUES('lack:run-followed:scope','no key in GT_WITNESS_API_KEY: it stays silent');
INSERT INTO facts VALUES('model-rest','1790000100.250 30.0');
INSERT INTO facts VALUES('receipts:gt-nux','{"offset": 42, "open": [{"file": "1.json", "drained": 1.5, "message": "m", "transcript": "/t.jsonl", "nudge": {"sender": "sidecar:scope"}}], "transcript": "/t.jsonl"}');
INSERT INTO facts VALUES('receipts:gt-old','');
INSERT INTO facts VALUES('receipts:gt-toast','');
INSERT INTO facts VALUES('renewed:main/ace','1');
INSERT INTO facts VALUES('renewed:main/nux','');
INSERT INTO facts VALUES('spoken:989fada822c641e9b1d48d6d63e585d9','2574.626 scope');
INSERT INTO facts VALUES('spoken:run-followed','21.000 scope');
INSERT INTO facts VALUES('town-events','9:77');
CREATE UNIQUE INDEX one_life ON groups (rig, polecat) WHERE state != 'NUKED';
CREATE INDEX events_of_run ON events (run, id);
CREATE INDEX decisions_of_run ON decisions (run, sidecar, time);
CREATE INDEX decisions_by_time ON decisions (time);
COMMIT;
PRAGMA user_version = 1;
