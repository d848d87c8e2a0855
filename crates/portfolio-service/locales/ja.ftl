start = トップ
projects = プロジェクト
contests = コンテスト
people = 部員
groups = グループ
